// Package wallet pays x402 challenges of scheme exact in SPL tokens on Solana.
package wallet

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/gagliardetto/solana-go"
	budget "github.com/gagliardetto/solana-go/programs/compute-budget"
	"github.com/gagliardetto/solana-go/programs/memo"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"
)

const (
	usdcDecimals = 6
	unitLimit    = 20_000
	maxChallenge = 64 << 10
)

// Transport pays a 402 of at most MaxAmount atomic units and repeats the call once.
type Transport struct {
	Key       solana.PrivateKey
	RPC       *rpc.Client
	MaxAmount uint64
}

type option struct {
	Scheme  string `json:"scheme"`
	Network string `json:"network"`
	Amount  string `json:"amount"`
	PayTo   string `json:"payTo"`
	Asset   string `json:"asset"`
	Extra   struct {
		FeePayer        string `json:"feePayer"`
		RecentBlockhash string `json:"recentBlockhash"`
	} `json:"extra"`
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil || answer.StatusCode != http.StatusPaymentRequired {
		return answer, err
	}
	challenge, err := io.ReadAll(io.LimitReader(answer.Body, maxChallenge))
	answer.Body.Close()
	if err != nil {
		return nil, err
	}
	payment, err := t.payment(request, challenge)
	if err != nil {
		return nil, fmt.Errorf("can't pay %s: %w", request.URL, err)
	}
	again := request.Clone(request.Context())
	if request.GetBody != nil {
		if again.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
	}
	again.Header.Set("PAYMENT-SIGNATURE", payment)
	return http.DefaultTransport.RoundTrip(again)
}

// payment answers the value of the PAYMENT-SIGNATURE header: base64 of the x402 v2 PaymentPayload.
func (t *Transport) payment(request *http.Request, challenge []byte) (string, error) {
	var required struct {
		Resource json.RawMessage   `json:"resource"`
		Accepts  []json.RawMessage `json:"accepts"`
	}
	if err := json.Unmarshal(challenge, &required); err != nil {
		return "", err
	}
	for _, raw := range required.Accepts {
		var offer option
		if err := json.Unmarshal(raw, &offer); err != nil {
			return "", err
		}
		if offer.Scheme != "exact" || !strings.HasPrefix(offer.Network, "solana:") {
			continue
		}
		transaction, err := t.sign(request, offer)
		if err != nil {
			return "", err
		}
		payload, err := json.Marshal(map[string]any{
			"x402Version": 2,
			"resource":    required.Resource,
			"accepted":    raw,
			"payload":     map[string]string{"transaction": transaction},
		})
		return base64.StdEncoding.EncodeToString(payload), err
	}
	return "", errors.New("no option of scheme exact on Solana")
}

// sign answers the base64 of a transfer that lacks the fee payer's signature alone.
func (t *Transport) sign(request *http.Request, offer option) (string, error) {
	amount, err := strconv.ParseUint(offer.Amount, 10, 64)
	if err != nil || amount > t.MaxAmount {
		return "", fmt.Errorf("the price is %s, at most %d is allowed", offer.Amount, t.MaxAmount)
	}
	mint, err1 := solana.PublicKeyFromBase58(offer.Asset)
	receiver, err2 := solana.PublicKeyFromBase58(offer.PayTo)
	feePayer, err3 := solana.PublicKeyFromBase58(offer.Extra.FeePayer)
	blockhash, err4 := t.blockhash(request, offer)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return "", err
	}
	payer := t.Key.PublicKey()
	from, _, err1 := solana.FindAssociatedTokenAddress(payer, mint)
	to, _, err2 := solana.FindAssociatedTokenAddress(receiver, mint)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	// Two equal purchases under one blockhash would be one transaction without it.
	nonce := make([]byte, 16)
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	transaction, err := solana.NewTransaction([]solana.Instruction{
		budget.NewSetComputeUnitLimitInstruction(unitLimit).Build(),
		budget.NewSetComputeUnitPriceInstruction(1).Build(),
		token.NewTransferCheckedInstruction(amount, usdcDecimals, from, mint, to, payer, nil).Build(),
		memo.NewMemoInstruction([]byte(hex.EncodeToString(nonce)), payer).Build(),
	}, blockhash, solana.TransactionPayer(feePayer))
	if err != nil {
		return "", err
	}
	_, err = transaction.PartialSign(func(key solana.PublicKey) *solana.PrivateKey {
		if key.Equals(payer) {
			return &t.Key
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return transaction.ToBase64()
}

func (t *Transport) blockhash(request *http.Request, offer option) (solana.Hash, error) {
	if offer.Extra.RecentBlockhash != "" {
		return solana.HashFromBase58(offer.Extra.RecentBlockhash)
	}
	latest, err := t.RPC.GetLatestBlockhash(request.Context(), rpc.CommitmentConfirmed)
	if err != nil {
		return solana.Hash{}, err
	}
	return latest.Value.Blockhash, nil
}
