// Package v1challenge checks what a v1 client in Go gets: with a PAYMENT-REQUIRED header, it would read the challenge as v2.
package v1challenge

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestOnlyBodyTellsOfV1(t *testing.T) {
	for query, version := range map[string]int{"?x402Version=1": 1, "": 2} {
		answer, err := http.Post(os.Getenv("COINSLOT_URL")+"/v1/summarize"+query, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var challenge struct{ X402Version int }
		if err := json.NewDecoder(answer.Body).Decode(&challenge); err != nil {
			t.Fatal(err)
		}
		if got := answer.Header.Get("PAYMENT-REQUIRED") != ""; challenge.X402Version != version || got != (version == 2) {
			t.Errorf("%q: version %d, header %t", query, challenge.X402Version, got)
		}
	}
}
