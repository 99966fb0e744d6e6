//! Buys every operation of a sandbox, in both versions of x402.

use std::{env, error::Error, fs, sync::Arc, time::Duration};

use reqwest::Client;
use serde_json::Value;
use solana_client::nonblocking::rpc_client::RpcClient;
use solana_keypair::Keypair;
use x402_chain_solana::{V1SolanaExactClient, V2SolanaExactClient};
use x402_reqwest::{ReqwestWithPayments, ReqwestWithPaymentsBuild, X402Client};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let key: Vec<u8> = serde_json::from_str(&fs::read_to_string(env::var("KEYPAIR")?)?)?;
    let keypair = Arc::new(Keypair::try_from(key.as_slice())?);
    let rpc = Arc::new(RpcClient::new(env::var("RPC_URL")?));
    let wallet = X402Client::new()
        .register(V1SolanaExactClient::new(keypair.clone(), rpc.clone()))
        .register(V2SolanaExactClient::new(keypair, rpc));
    let client = Client::builder().timeout(Duration::from_secs(60)).build()?.with_payments(wallet).build();

    let url = env::var("COINSLOT_URL")?;
    let document: Value = serde_json::from_str(&fs::read_to_string("openapi.json")?)?;
    let mut bought = 0;
    for (path, item) in document["paths"].as_object().ok_or("no paths")? {
        if item["post"]["x-price"].is_null() {
            continue;
        }
        let example = &item["post"]["requestBody"]["content"]["application/json"]["example"];
        for (query, receipt) in [("?x402Version=1", "X-PAYMENT-RESPONSE"), ("", "PAYMENT-RESPONSE")] {
            let answer = client.post(format!("{url}{path}{query}")).json(example).send().await?;
            let paid = answer.status() == 200 && answer.headers().contains_key(receipt);
            if !paid {
                return Err(format!("{path}{query}: {} {}", answer.status(), answer.text().await?).into());
            }
            bought += 1;
        }
    }
    if bought != 10 {
        return Err(format!("bought {bought} of ten calls").into());
    }
    Ok(())
}
