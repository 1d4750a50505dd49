//! Documents and secrets that other rooms read for a tenant, under the policy of stored functions:
//! users who may publish a runbook need not be operators of the node.

use std::collections::BTreeMap;
use std::time::Duration;

use segno::{Category, Failure};

use super::catalogue::Functions;
use super::error::FunctionError;
use super::http::{Document, HttpCall, HttpSettings, Method, Subject, fetch};
use super::limits::MAX_REDIRECTS;
use super::names::Scope;
use super::secret::{Secret, SecretReference, SettingValue};

/// A document that is to be read.
#[derive(Debug, Clone, Copy)]
pub struct Fetch<'a> {
    /// Who reads it.
    pub scope: &'a Scope,
    /// Where it is.
    pub url: &'a str,
    /// Headers of the request.
    pub headers: &'a BTreeMap<String, SettingValue>,
    /// Most bytes of it.
    pub limit_bytes: usize,
    /// Longest time for it.
    pub timeout: Duration,
    /// The same for every attempt to read it.
    pub idempotency_key: &'a str,
}

impl Functions {
    /// Reads a document: from public addresses only, unless stored functions may call others too.
    ///
    /// # Errors
    /// `function-not-permitted` for a secret that is not the tenant's, and whatever a call of a function fails with.
    pub async fn fetch(&self, document: Fetch<'_>) -> Result<Document, Failure> {
        for (name, value) in document.headers {
            if let Some(secret) = value.secret() {
                self.check_secret(document.scope, &format!("headers.{name}"), secret)
                    .map_err(misconfigured)?;
            }
        }
        let settings = HttpSettings {
            method: Method::Get,
            headers: document.headers.clone(),
            response_limit: document.limit_bytes,
            redirects: MAX_REDIRECTS,
            allow_private: self.inner.policy.private_addresses,
            ..HttpSettings::new(document.url)
        };
        fetch(HttpCall {
            settings: &settings,
            clients: &self.inner.clients,
            idempotency_key: document.idempotency_key,
            timeout: Some(document.timeout),
            clock: &*self.inner.clock,
            subject: Subject::Document,
        })
        .await
    }

    /// Whether a tenant may have a secret read. The field is where it refers to it.
    ///
    /// # Errors
    /// `function-not-permitted`, or `invalid-function` if this is no reference.
    pub fn check_secret(
        &self,
        scope: &Scope,
        field: &str,
        secret: &SecretReference,
    ) -> Result<(), FunctionError> {
        secret.check(field)?;
        self.inner.policy.check_secret(scope, field, secret)
    }

    /// Reads a secret of a tenant.
    ///
    /// # Errors
    /// `function-not-permitted`, or `secret-unavailable`.
    pub async fn read_secret(
        &self,
        scope: &Scope,
        field: &str,
        secret: &SecretReference,
    ) -> Result<Secret, Failure> {
        self.check_secret(scope, field, secret).map_err(misconfigured)?;
        secret.resolve().await
    }
}

fn misconfigured(error: FunctionError) -> Failure {
    Failure::new(Category::Configuration, error.to_string()).code(error.code())
}
