//! `segno hook test`: sends a sample to a route, signed as its sender would.

use segno::clock::{Clock as _, SystemClock};
use segno::ids::{IdSource as _, SystemIds};
use segno_api::Client;
use segno_server::{Verification, signed_headers};
use serde_json::{Value, json};

use super::super::start::bytes;
use super::arguments::Sample;
use super::routes::reference;
use crate::exit::Failure;
use crate::output::{Output, Table};

/// Sends it.
pub async fn run(client: &Client, sample: Sample, output: &Output) -> Result<(), Failure> {
    let hook = client.hook(&sample.name).await?;
    let declaration: Value = serde_json::from_str(hook.declaration.text()).unwrap_or_default();
    let body = bytes("--data", &sample.data)?;
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    headers.extend(signature(&declaration["verification"], sample.secret.as_deref(), &body).await?);
    for header in &sample.headers {
        let Some((name, value)) = header.split_once('=') else {
            return Err(Failure::Refused(format!("--header {header}: write NAME=VALUE")));
        };
        // What was said wins over what is made up.
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.push((name.to_owned(), value.to_owned()));
    }
    let received = client.send_hook(&sample.name, &headers, body).await?;
    output.print(&received, Table::default().line(&received.id, &received.outcome))
}

/// The headers that the sender of this route would add.
async fn signature(
    verification: &Value,
    secret: Option<&str>,
    body: &[u8],
) -> Result<Vec<(String, String)>, Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let mut verification = verification.clone();
    if let Some(secret) = secret
        && verification.is_object()
    {
        if let Some(path) = secret.strip_prefix("file:") {
            std::fs::metadata(path)
                .map_err(|error| Failure::File { place: format!("--secret {secret}"), error })?;
        }
        verification["secrets"] = json!([reference(secret)?]);
    }
    let verification: Verification = serde_json::from_value(verification).map_err(|error| refused(&error))?;
    let Some(reference) = verification.secrets().first() else { return Ok(Vec::new()) };
    let secret = reference.resolve().await.map_err(|failure| {
        let text = format!("{}; pass --secret with its place on this machine", failure.message);
        Failure::invalid("secret-unavailable", text)
    })?;
    let (id, now_s) = (format!("msg_{}", SystemIds.new_uuid().simple()), SystemClock.now_ms() / 1_000);
    signed_headers(&verification, secret.expose(), &id, now_s, body).map_err(|error| refused(&error))
}
