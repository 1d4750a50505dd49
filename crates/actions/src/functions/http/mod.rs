//! Functions that are HTTP calls: the input as JSON body, the answer as result.
//!
//! | file | what |
//! |---|---|
//! | `run.rs` | one call: request, redirects, answer |
//! | `guard.rs` | which addresses may be called, pure |
//! | `clients.rs` | connections that go to checked addresses only |
//! | `sign.rs` | Standard Webhooks signatures |

mod clients;
mod guard;
mod run;
mod sign;

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use segno::limits::MAX_PAYLOAD_BYTES;
use serde::{Deserialize, Serialize};

use super::error::FunctionError;
use super::limits::{MAX_HEADERS, MAX_REDIRECTS};
use super::secret::{SecretReference, SettingValue};

pub use clients::{Resolver, SystemResolver};
pub use guard::{Guard, Refusal};
pub use run::Document;
pub use sign::sign;

pub(crate) use clients::Clients;
pub(crate) use run::{HttpCall, Subject, fetch, run};

/// Headers that calls set themselves, or that would change where a request ends.
const OWN_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "idempotency-key",
    "te",
    "transfer-encoding",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
];

/// Settings of an HTTP call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// The URL, `https:` or `http:`.
    pub url: String,
    /// The method.
    #[serde(default)]
    pub method: Method,
    /// Headers of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, SettingValue>,
    /// Whether the input is sent as JSON body; without it, GET and DELETE send none and the others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_body: Option<bool>,
    /// Secret that requests are signed with, as Standard Webhooks have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_secret: Option<SecretReference>,
    /// Most bytes of the answer.
    #[serde(default = "default_response_limit")]
    pub response_limit: usize,
    /// How many redirects are followed.
    #[serde(default)]
    pub redirects: u32,
    /// Whether every address may be called, also private ones.
    #[serde(default)]
    pub allow_private: bool,
    /// Host names, addresses and networks (`10.1.0.0/16`) that may be called although they are private.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Read; no body unless said.
    Get,
    /// Do.
    #[default]
    Post,
    /// Put there.
    Put,
    /// Change.
    Patch,
    /// Remove; no body unless said.
    Delete,
}

impl Method {
    fn to_http(self) -> reqwest::Method {
        match self {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        }
    }
}

fn default_response_limit() -> usize {
    1024 * 1024
}

impl HttpSettings {
    /// A POST with default settings.
    pub fn new(url: impl Into<String>) -> Self {
        HttpSettings {
            url: url.into(),
            method: Method::default(),
            headers: BTreeMap::new(),
            send_body: None,
            signing_secret: None,
            response_limit: default_response_limit(),
            redirects: 0,
            allow_private: false,
            allow_hosts: Vec::new(),
        }
    }

    fn sends_body(&self) -> bool {
        self.send_body.unwrap_or(!matches!(self.method, Method::Get | Method::Delete))
    }

    /// Which addresses may be called.
    pub(crate) fn guard(&self) -> Result<Guard, FunctionError> {
        Guard::new(self.allow_private, &self.allow_hosts)
            .map_err(|problem| FunctionError::invalid("allow_hosts", problem))
    }

    pub(crate) fn check(&self) -> Result<(), FunctionError> {
        let url = check_url("url", &self.url)?;
        let refused = self.guard()?.check_url(&url);
        refused.map_err(|refusal| FunctionError::invalid("url", refusal.to_string()))?;
        self.check_headers()?;
        if let Some(secret) = &self.signing_secret {
            secret.check("signing_secret")?;
        }
        if self.response_limit == 0 || self.response_limit > MAX_PAYLOAD_BYTES {
            let problem =
                format!("{} is out of range; write 1 to {MAX_PAYLOAD_BYTES} bytes", self.response_limit);
            return Err(FunctionError::invalid("response_limit", problem));
        }
        if self.redirects > MAX_REDIRECTS {
            let problem = format!("{} is out of range; write 0 to {MAX_REDIRECTS}", self.redirects);
            return Err(FunctionError::invalid("redirects", problem));
        }
        Ok(())
    }

    fn check_headers(&self) -> Result<(), FunctionError> {
        if self.headers.len() > MAX_HEADERS {
            let problem = format!("{} headers are too many, the limit is {MAX_HEADERS}", self.headers.len());
            return Err(FunctionError::invalid("headers", problem));
        }
        for (name, value) in &self.headers {
            let field = format!("headers.{name}");
            let parsed = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| FunctionError::invalid(&field, "this is no name of an HTTP header"))?;
            if OWN_HEADERS.contains(&parsed.as_str()) {
                return Err(FunctionError::invalid(
                    field,
                    "this header is set by the call itself; take it out",
                ));
            }
            match value {
                SettingValue::Secret(reference) => reference.check(&field)?,
                SettingValue::Text(text) if HeaderValue::from_str(text).is_err() => {
                    return Err(FunctionError::invalid(
                        field,
                        "the value has characters that no header may have",
                    ));
                }
                SettingValue::Text(_) => {}
            }
        }
        Ok(())
    }
}

/// A URL that can be called: absolute, http or https, without credentials.
pub(crate) fn check_url(field: &str, text: &str) -> Result<Url, FunctionError> {
    let refuse = |problem: String| Err(FunctionError::invalid(field, problem));
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return refuse(format!("this is not a URL such as https://example.org/hook: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return refuse(format!("the scheme {:?} cannot be called; use https or http", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("it has credentials in it; put them into a header, by reference".to_owned());
    }
    Ok(url)
}
