//! Buys every operation of a sandbox by one protocol, without an RPC server. Usage: coinslot-pay-kit-client x402|mpp

use std::{env, error::Error, fs, sync::Arc, time::Duration};

use reqwest::{Client, Response};
use serde_json::Value;
use solana_pay_kit::mpp::client::{SelectChargeChallengeOptions, build_credential_header, select_charge_challenge};
use solana_pay_kit::mpp::solana_keychain::memory::MemorySigner;
use solana_pay_kit::mpp::solana_rpc_client::rpc_client::RpcClient;
use solana_pay_kit::mpp::{PAYMENT_RECEIPT_HEADER, parse_receipt, parse_www_authenticate_all};
use solana_pay_kit::x402::client::exact::{build_payment_header, parse_x402_challenge_for_network};

const NETWORK: Option<&str> = Some("devnet");

type Failure = Box<dyn Error>;

struct Wallet {
    signer: MemorySigner,
    rpc: Arc<RpcClient>,
}

impl Wallet {
    /// The header that pays a 402, and the one of the answer that has its receipt.
    async fn pay(&self, protocol: &str, unpaid: Response) -> Result<(&'static str, String, &'static str), Failure> {
        let headers: Vec<(String, String)> = unpaid
            .headers()
            .iter()
            .map(|(name, value)| Ok((name.to_string(), value.to_str()?.to_string())))
            .collect::<Result<_, Failure>>()?;
        let body = unpaid.text().await?;
        if protocol == "x402" {
            let required = parse_x402_challenge_for_network(&headers, Some(&body), NETWORK).ok_or("no challenge of x402")?;
            let payment = build_payment_header(&self.signer, &self.rpc, &required, None).await?;
            return Ok(("PAYMENT-SIGNATURE", payment, "PAYMENT-RESPONSE"));
        }
        let named = headers.iter().filter(|(name, _)| name == "www-authenticate").map(|(_, value)| value.as_str());
        let challenges = parse_www_authenticate_all(named).into_iter().collect::<Result<Vec<_>, _>>()?;
        let options = SelectChargeChallengeOptions { network: NETWORK, ..Default::default() };
        let challenge = select_charge_challenge(&challenges, options)?.ok_or("no challenge of MPP")?;
        let payment = build_credential_header(&self.signer, &self.rpc, challenge).await?;
        Ok(("Authorization", payment, PAYMENT_RECEIPT_HEADER))
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let protocol = env::args().nth(1).ok_or("usage: coinslot-pay-kit-client x402|mpp")?;
    let key: Vec<u8> = serde_json::from_str(&fs::read_to_string(env::var("KEYPAIR")?)?)?;
    let rpc = Arc::new(RpcClient::new("http://127.0.0.1:9".to_string()));
    let wallet = Wallet { signer: MemorySigner::from_bytes(&key)?, rpc };
    let client = Client::builder().timeout(Duration::from_secs(60)).build()?;

    let url = env::var("COINSLOT_URL")?;
    let document: Value = serde_json::from_str(&fs::read_to_string("openapi.json")?)?;
    let mut bought = 0;
    for (path, item) in document["paths"].as_object().ok_or("no paths")? {
        if item["post"]["x-price"].is_null() {
            continue;
        }
        let call = client
            .post(format!("{url}{path}"))
            .json(&item["post"]["requestBody"]["content"]["application/json"]["example"]);
        let unpaid = call.try_clone().ok_or("the body is a stream")?.send().await?;
        let (header, payment, receipt) = wallet.pay(&protocol, unpaid).await?;
        let answer = call.header(header, payment).send().await?;
        let status = answer.status();
        let receipt = answer.headers().get(receipt).map(|value| value.to_str().map(str::to_string)).transpose()?;
        let text = answer.bytes().await?;
        let receipt = match receipt {
            Some(receipt) if status == 200 => receipt,
            _ => return Err(format!("{path}: {status} {}", String::from_utf8_lossy(&text)).into()),
        };
        if protocol == "mpp" && !parse_receipt(&receipt)?.is_success() {
            return Err(format!("{path}: its receipt says that it failed").into());
        }
        bought += 1;
    }
    if bought != 5 {
        return Err(format!("bought {bought} of five operations").into());
    }
    Ok(())
}
