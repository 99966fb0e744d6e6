// Package v1challenge lets clients that take the PAYMENT-REQUIRED header to mean x402 v2 pay in v1.
package v1challenge

import "net/http"

// Transport removes the PAYMENT-REQUIRED header from the 402s of calls with ?x402Version=1: the v1 challenge is in the body, too.
type Transport struct{ Next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.Next.RoundTrip(request)
	if err == nil && answer.StatusCode == http.StatusPaymentRequired && request.URL.Query().Get("x402Version") == "1" {
		answer.Header.Del("PAYMENT-REQUIRED")
	}
	return answer, err
}
