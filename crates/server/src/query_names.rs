//! The query parameters that each operation takes, as the OpenAPI document lists them. All others are refused.
//!
//! A parameter with a typing error must not be ignored: with `tennant=t2` the request would change the default tenant.
//! Receivers of webhooks and the probes `/healthz` and `/readyz` are outside: their senders add parameters of their own.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use crate::problem::Refusal;
use crate::scope::SCOPE_PARAMETERS;

/// Names of parameters, by the template of the path and the method.
#[derive(Debug, Default)]
pub struct QueryNames(HashMap<String, Vec<(Method, BTreeSet<String>)>>);

impl QueryNames {
    /// What a document says.
    pub fn of(document: &OpenApi) -> Arc<Self> {
        let paths = document.paths.paths.iter();
        Arc::new(QueryNames(paths.map(|(path, item)| (path.clone(), operations(item))).collect()))
    }

    /// Refuses the first parameter that the operation does not take.
    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let Some(query) = request.uri().query() else { return Ok(()) };
        let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        let operations = self.0.get(route).map_or(&[][..], Vec::as_slice);
        let own = operations.iter().find(|(known, _)| known == method).map(|(_, names)| names);
        for (name, _) in form_urlencoded::parse(query.as_bytes()) {
            let is_known = SCOPE_PARAMETERS.contains(&&*name) || own.is_some_and(|own| own.contains(&*name));
            if !is_known {
                let all = own.into_iter().flatten().map(String::as_str);
                let all: BTreeSet<&str> = SCOPE_PARAMETERS.into_iter().chain(all).collect();
                let all = Vec::from_iter(all).join(", ");
                let detail = format!("is not a parameter of {method} {route}; it takes: {all}");
                return Err(Refusal::field(name, detail));
            }
        }
        Ok(())
    }
}

fn operations(item: &PathItem) -> Vec<(Method, BTreeSet<String>)> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::DELETE, delete),
        (Method::PATCH, patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, names(operation.as_ref()?)))).collect()
}

fn names(operation: &Operation) -> BTreeSet<String> {
    let parameters = operation.parameters.iter().flatten();
    let named = parameters.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
        _ => None,
    });
    named.collect()
}

/// Refuses requests with parameters that their operation does not take.
pub async fn layer(State(known): State<Arc<QueryNames>>, request: Request, next: Next) -> Response {
    match known.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}
