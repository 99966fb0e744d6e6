// Command clients pays Coinslot with the client that oapi-codegen generates from its description.
package main

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"coinslot/clients/coinslot"
	"coinslot/clients/wallet"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
)

func main() {
	key, err := solana.PrivateKeyFromSolanaKeygenFile(os.Getenv("KEYPAIR"))
	check(err)
	pay := &wallet.Transport{Key: key, RPC: rpc.New(os.Getenv("RPC_URL")), MaxAmount: 1_000_000}
	doer := &http.Client{Transport: pay, Timeout: time.Minute}
	client, err := coinslot.NewClientWithResponses(os.Getenv("COINSLOT_URL"), coinslot.WithHTTPClient(doer))
	check(err)

	ctx := context.Background()
	text := "The bridge closes on Monday. Ferries run every ten minutes until it opens again."
	summary, err := client.SummarizeWithResponse(ctx, nil, coinslot.SummarizeJSONRequestBody{Text: text})
	check(err)
	expectPaid(summary.HTTPResponse)
	expect(summary.JSON200 != nil && summary.JSON200.Summary != "", "no summary")

	speech, err := client.TextToSpeechWithResponse(ctx, nil, coinslot.TextToSpeechJSONRequestBody{Text: "One coin."})
	check(err)
	expectPaid(speech.HTTPResponse)
	expect(bytes.HasPrefix(speech.Body, []byte("RIFF")), "the speech is no WAV file")

	voices, err := client.ListVoicesWithResponse(ctx)
	check(err)
	expect(voices.JSON200 != nil && len(voices.JSON200.Voices) > 0, "no voices")
}

func expectPaid(answer *http.Response) {
	expect(answer.StatusCode == http.StatusOK, answer.Status)
	expect(answer.Header.Get("PAYMENT-RESPONSE") != "", "no PAYMENT-RESPONSE header")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func expect(condition bool, message string) {
	if !condition {
		log.Fatal(message)
	}
}
