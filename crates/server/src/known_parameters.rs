//! The query parameters and preconditions that each operation takes, as the OpenAPI document lists them. All others are refused,
//! and so are values that are not text.
//!
//! A parameter with a typing error must not be ignored: with `tennant=t2` the request would change the default tenant. A
//! precondition must not be ignored either: the request would change what its caller has not seen. `If-None-Match` of a read is
//! the question of a cache, which an answer in full is always right for.
//!
//! Receivers of webhooks and the probes `/healthz` and `/readyz` are outside: their senders add parameters of their own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use crate::problem::Refusal;
use crate::scope::SCOPE_PARAMETERS;

/// Headers that make a request conditional, as they are written.
static PRECONDITIONS: [(HeaderName, &str); 2] = [(IF_MATCH, "If-Match"), (IF_NONE_MATCH, "If-None-Match")];

/// Parameters by the template of the path and the method.
#[derive(Debug, Default)]
pub struct KnownParameters(HashMap<String, Vec<(Method, Parameters)>>);

/// The parameters of an operation.
#[derive(Debug, Default)]
struct Parameters {
    /// Names in the query.
    query: BTreeSet<String>,
    /// Names of headers, in lower case.
    headers: BTreeSet<String>,
}

impl KnownParameters {
    /// The parameters that a document lists.
    pub fn of(document: &OpenApi) -> Arc<Self> {
        let paths = document.paths.paths.iter();
        Arc::new(KnownParameters(paths.map(|(path, item)| (path.clone(), operations(item))).collect()))
    }

    /// Refuses the first parameter or precondition that the operation does not take.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let operations = self.0.get(route).map_or(&[][..], Vec::as_slice);
        let own = operations.iter().find(|(known, _)| known == method).map(|(_, own)| own);
        let none = Parameters::default();
        let own = own.unwrap_or(&none);
        let query = request.uri().query().unwrap_or_default();
        own.check_query(query, method, route)?;
        check_values(query)?;
        own.check_preconditions(request, method, route)
    }
}

impl Parameters {
    fn of(operation: &Operation) -> Self {
        let mut found = Parameters::default();
        for parameter in operation.parameters.iter().flatten() {
            let RefOr::T(parameter) = parameter else { continue };
            match parameter.parameter_in {
                ParameterIn::Query => found.query.insert(parameter.name.clone()),
                ParameterIn::Header => found.headers.insert(parameter.name.to_ascii_lowercase()),
                _ => false,
            };
        }
        found
    }

    fn check_query(&self, query: &str, method: &Method, route: &str) -> Result<(), Refusal> {
        for (name, _) in form_urlencoded::parse(query.as_bytes()) {
            if SCOPE_PARAMETERS.contains(&&*name) || self.query.contains(&*name) {
                continue;
            }
            let all = self.query.iter().map(String::as_str);
            let all: BTreeSet<&str> = SCOPE_PARAMETERS.into_iter().chain(all).collect();
            let all = Vec::from_iter(all).join(", ");
            let detail = format!("is not a parameter of {method} {route}; it takes: {all}");
            return Err(Refusal::field(name, detail));
        }
        Ok(())
    }

    fn check_preconditions(&self, request: &Request, method: &Method, route: &str) -> Result<(), Refusal> {
        for (header, name) in &PRECONDITIONS {
            let is_of_cache = *header == IF_NONE_MATCH && method.is_safe();
            if is_of_cache || !request.headers().contains_key(header) || self.takes(header) {
                continue;
            }
            let taken = PRECONDITIONS.iter().filter(|(header, _)| self.takes(header)).map(|(_, name)| *name);
            let taken = Vec::from_iter(taken).join(", ");
            let rest = match taken.is_empty() {
                true => "which takes none; send the request without this header".to_owned(),
                false => format!("which takes: {taken}"),
            };
            return Err(Refusal::field(*name, format!("is not a precondition of {method} {route}, {rest}")));
        }
        Ok(())
    }

    fn takes(&self, header: &HeaderName) -> bool {
        self.headers.contains(header.as_str())
    }
}

/// The parameter whose values are checked by the listing that gave them.
const CURSOR: &str = "cursor";

/// Refuses values that no name, id or filter can have: a replaced character would match something else, or nothing.
fn check_values(query: &str) -> Result<(), Refusal> {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, _)) = form_urlencoded::parse(pair.as_bytes()).next() else { continue };
        let value = pair.split_once('=').map_or("", |(_, value)| value);
        match percent_encoding::percent_decode_str(value).decode_utf8() {
            Err(_) => return Err(Refusal::field(name, "is not percent-encoded UTF-8")),
            Ok(value) if name != CURSOR && value.contains(char::is_control) => {
                return Err(Refusal::field(name, "has control characters"));
            }
            Ok(_) => {}
        }
    }
    Ok(())
}

fn operations(item: &PathItem) -> Vec<(Method, Parameters)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::DELETE, delete),
        (Method::PATCH, patch),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, Parameters::of(operation.as_ref()?))))
        .collect()
}

/// Refuses requests with parameters or preconditions that their operation does not take.
pub async fn layer(State(known): State<Arc<KnownParameters>>, request: Request, next: Next) -> Response {
    match known.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
