//! One HTTP call: request, redirects, answer.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Request, Response, StatusCode, Url};
use segno::clock::{self, Clock};
use segno::{Category, Failure, Payload};
use serde_json::json;

use super::super::error::FunctionError;
use super::super::limits::MAX_SECRET_BYTES;
use super::super::rust::bad_payload;
use super::super::secret::Redactor;
use super::clients::Clients;
use super::guard::{Guard, Refusal};
use super::sign::sign;
use super::{HttpSettings, check_url};

/// How much of an answer a failure shows.
const SHOWN_BODY_CHARS: usize = 500;
/// How much of a refused answer is read for that: more than the longest secret, so that none is cut in two.
const SHOWN_BODY_BYTES: usize = 2 * MAX_SECRET_BYTES as usize;

/// A call that is to be made for an attempt.
pub(crate) struct HttpCall<'a> {
    pub(crate) settings: &'a HttpSettings,
    pub(crate) clients: &'a Clients,
    pub(crate) idempotency_key: &'a str,
    pub(crate) timeout: Option<Duration>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) subject: Subject,
}

/// What a call is for: errors advise of settings that its author has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A function, with the settings of its declaration.
    Function,
    /// A document that a tenant has read, such as the rows of a data source.
    Document,
}

/// An answer that is a success.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Payload,
}

/// A document as the server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether the server says that it is JSON.
    pub is_json: bool,
    /// Where it came from, after redirects.
    pub url: Url,
}

/// Makes the call. Dropping the future closes the connection.
pub(crate) async fn run(call: HttpCall<'_>, input: &str) -> Result<Answer, Failure> {
    let mut redactor = Redactor::default();
    let work = async {
        let hop = call.first_hop(input, &mut redactor).await?;
        let exchange = Exchange { call: &call, redactor: &redactor };
        let (hop, response) = exchange.follow(hop).await?;
        let status = response.status();
        Ok(Answer { status, body: exchange.answer(&hop, response).await? })
    };
    call.limited(work).await
}

/// Makes a call without input and returns what the server sent, whatever its type.
pub(crate) async fn fetch(call: HttpCall<'_>) -> Result<Document, Failure> {
    let mut redactor = Redactor::default();
    let work = async {
        let hop = call.first_hop("", &mut redactor).await?;
        let exchange = Exchange { call: &call, redactor: &redactor };
        let (hop, response) = exchange.follow(hop).await?;
        let (bytes, is_json) = exchange.body(&hop, response).await?;
        Ok(Document { bytes, is_json, url: hop.url })
    };
    call.limited(work).await
}

/// One request on the way to an answer.
struct Hop {
    method: reqwest::Method,
    url: Url,
    /// What the function's author set: only for the host that it was set for.
    headers: HeaderMap,
    body: Option<String>,
}

impl HttpCall<'_> {
    /// The outcome of the work, or a failure once the call has taken too long.
    async fn limited<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let Some(limit) = self.timeout else { return work.await };
        clock::timeout(self.clock, limit, work).await.unwrap_or_else(|| {
            let ms = clock::duration_ms(limit);
            let message = format!("{} did not answer within {ms} ms", place(&self.settings.url));
            Err(Failure::new(Category::Timeout, message).code("attempt-timeout"))
        })
    }

    async fn first_hop(&self, input: &str, redactor: &mut Redactor) -> Result<Hop, Failure> {
        let settings = self.settings;
        let url = check_url("url", &settings.url).map_err(misconfigured)?;
        let body = settings.sends_body().then(|| input.to_owned());
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let text = value.resolve(redactor).await?;
            let (Ok(name), Ok(mut text)) =
                (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(text.expose()))
            else {
                let problem = "the value has characters that no header may have";
                return Err(misconfigured(FunctionError::invalid(format!("headers.{name}"), problem)));
            };
            text.set_sensitive(value.secret().is_some());
            headers.insert(name, text);
        }
        if let Some(reference) = &settings.signing_secret {
            let secret = redactor.resolve(reference).await?;
            let (id, timestamp_s) = (self.idempotency_key, self.clock.now_ms() / 1_000);
            let signature = sign(&secret, id, timestamp_s, body.as_deref().unwrap_or_default().as_bytes())?;
            for (name, value) in [
                ("webhook-id", id.to_owned()),
                ("webhook-timestamp", timestamp_s.to_string()),
                ("webhook-signature", signature),
            ] {
                headers.insert(name, plain(&value)?);
            }
        }
        Ok(Hop { method: settings.method.to_http(), url, headers, body })
    }
}

/// A call with its secrets read.
struct Exchange<'a> {
    call: &'a HttpCall<'a>,
    redactor: &'a Redactor,
}

impl Exchange<'_> {
    /// The last hop, and its answer.
    async fn follow(&self, mut hop: Hop) -> Result<(Hop, Response), Failure> {
        let guard = self.call.settings.guard().map_err(misconfigured)?;
        let mut left = self.call.settings.redirects;
        loop {
            let response = self.send(&guard, &hop).await?;
            match redirected(&hop, &response) {
                Some(next) if left > 0 => {
                    hop = next?;
                    left -= 1;
                }
                _ => return Ok((hop, response)),
            }
        }
    }

    async fn send(&self, guard: &Guard, hop: &Hop) -> Result<Response, Failure> {
        guard.check_url(&hop.url).map_err(|refusal| self.refused(&refusal))?;
        let client = self.call.clients.get(guard).map_err(|error| self.unreachable(hop, error))?;
        let mut request = Request::new(hop.method.clone(), hop.url.clone());
        let headers = request.headers_mut();
        headers.insert("accept", HeaderValue::from_static("application/json, */*;q=0.5"));
        if hop.body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(hop.headers.clone());
        headers.insert("idempotency-key", plain(self.call.idempotency_key)?);
        *request.body_mut() = hop.body.clone().map(Into::into);
        client.execute(request).await.map_err(|error| self.unreachable(hop, error))
    }

    /// The body of a success within its limit, and whether the server says that it is JSON.
    async fn body(&self, hop: &Hop, mut response: Response) -> Result<(Vec<u8>, bool), Failure> {
        let status = response.status();
        if !status.is_success() {
            let retry_after_s = retry_after_s(&response);
            let (body, _) = self.read(hop, &mut response, SHOWN_BODY_BYTES).await?;
            return Err(self.bad_status(hop, status, retry_after_s, &body));
        }
        let is_json = is_json(response.headers());
        let limit = self.call.settings.response_limit;
        let (body, is_whole) = self.read(hop, &mut response, limit).await?;
        if !is_whole {
            let advice = match self.call.subject {
                Subject::Function => "raise response_limit, or have it answer less",
                Subject::Document => "have it return less",
            };
            let message = format!("{} answered with more than {limit} bytes; {advice}", shown(hop));
            return Err(Failure::application(message).non_retryable().code("output-too-large"));
        }
        Ok((body, is_json))
    }

    async fn answer(&self, hop: &Hop, response: Response) -> Result<Payload, Failure> {
        let (body, is_json) = self.body(hop, response).await?;
        if !is_json && !body.is_empty() {
            let text = self.redactor.text(&String::from_utf8_lossy(&body));
            return Payload::encode(&text).map_err(bad_payload);
        }
        self.redactor.payload(&body).map_err(|reason| {
            let start = self.start_of(&body);
            let message = format!("{} says that it answers with JSON, but: {reason}: {start:?}", shown(hop));
            Failure::application(message).non_retryable().code("output-not-json")
        })
    }

    /// Reads up to a limit, and says whether that was all.
    async fn read(
        &self,
        hop: &Hop,
        response: &mut Response,
        limit: usize,
    ) -> Result<(Vec<u8>, bool), Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(hop, error))? {
            let room = limit - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return Ok((body, false));
            }
        }
        Ok((body, true))
    }

    fn start_of(&self, body: &[u8]) -> String {
        self.redactor.cut_text(&String::from_utf8_lossy(body)).chars().take(SHOWN_BODY_CHARS).collect()
    }

    /// Being asked to wait or meeting a server in trouble is worth another try; being told that the request is wrong is not.
    fn bad_status(&self, hop: &Hop, status: StatusCode, retry_after_s: Option<u64>, body: &[u8]) -> Failure {
        let body = self.start_of(body);
        let hint = if status.is_redirection() { " (more redirects than the function follows)" } else { "" };
        let message = format!("{} answered {status}{hint}: {body}", shown(hop));
        let details =
            json!({ "status": status.as_u16(), "retry_after_seconds": retry_after_s, "body": body });
        let failure = Failure::application(message).code("http-status").details(details);
        let failure = match retry_after_s {
            Some(seconds) => failure.retry_after(Duration::from_secs(seconds)),
            None => failure,
        };
        let again = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        if again { failure } else { failure.non_retryable() }
    }

    fn refused(&self, refusal: &Refusal) -> Failure {
        let message = match self.call.subject {
            Subject::Function => refusal.to_string(),
            Subject::Document => refusal.of_document(),
        };
        Failure::new(Category::Configuration, message).code("address-refused")
    }

    /// A connection that could not be made or broke off, or one that the guard refused.
    fn unreachable(&self, hop: &Hop, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let mut message = format!("{} could not be called: {error}", shown(hop));
        let mut source = error.source();
        while let Some(cause) = source {
            if let Some(refusal) = cause.downcast_ref::<Refusal>() {
                return self.refused(refusal);
            }
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Failure::new(Category::Infrastructure, self.redactor.text(&message)).code("http-unreachable")
    }
}

/// Where an answer leads to, if it is a redirect. What the author set goes to the same origin only.
fn redirected(hop: &Hop, response: &Response) -> Option<Result<Hop, Failure>> {
    let status = response.status().as_u16();
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = response.headers().get(LOCATION)?;
    let url = location.to_str().ok().and_then(|location| hop.url.join(location).ok());
    let Some(url) = url else {
        let message = format!("{} redirects to something that is no URL", shown(hop));
        return Some(Err(Failure::application(message).non_retryable().code("http-status")));
    };
    if hop.url.scheme() == "https" && url.scheme() != "https" {
        let message = format!("{} redirects to a connection that is not encrypted", shown(hop));
        return Some(Err(Failure::application(message).non_retryable().code("http-status")));
    }
    let same_origin = url.origin() == hop.url.origin();
    let keeps_method = matches!(status, 307 | 308);
    Some(Ok(Hop {
        method: if keeps_method || hop.method == reqwest::Method::GET {
            hop.method.clone()
        } else {
            reqwest::Method::GET
        },
        headers: if same_origin { hop.headers.clone() } else { HeaderMap::new() },
        body: if keeps_method { hop.body.clone() } else { None },
        url,
    }))
}

/// Method and place of a request without its query, which may say too much.
fn shown(hop: &Hop) -> String {
    format!("{} {}", hop.method, place(hop.url.as_str()))
}

fn place(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// How long the server asks to wait, if it says so in seconds.
fn retry_after_s(response: &Response) -> Option<u64> {
    response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()
}

fn plain(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|error| Failure::application(error.to_string()).non_retryable())
}

fn misconfigured(error: FunctionError) -> Failure {
    Failure::new(Category::Configuration, error.to_string()).code("invalid-function")
}
