//! Webhooks.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;

use super::{Client, ClientError, Expected, PageRequest};
use crate::Json;
use crate::hook::{Hook, HookEventList, HookList, HookPayloadDetail, HookPayloadList, Received, Replayed};

/// Which payloads.
#[derive(Debug, Clone, Default)]
pub struct ListPayloads {
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Not after this time.
    pub until: Option<Timestamp>,
    /// At most this many.
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// A page of routes.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn hooks(&self, page: impl Into<PageRequest>) -> Result<HookList, ClientError> {
        self.get_with(&["v1", "hooks"], &page.into()).await
    }

    /// One route.
    ///
    /// # Errors
    /// `unknown-hook` when there is none.
    pub async fn hook(&self, name: &str) -> Result<Hook, ClientError> {
        self.get(&self.hook_path(name, &[])).await
    }

    /// Creates or replaces a route.
    ///
    /// # Errors
    /// `precondition-failed` when it is not as expected, `invalid-hook` for what it says.
    pub async fn put_hook(
        &self,
        name: &str,
        declaration: &Json,
        expected: Expected,
    ) -> Result<Hook, ClientError> {
        let call = self.request(Method::PUT, &self.hook_path(name, &[]), Duration::ZERO).json(declaration);
        let call = match expected {
            Expected::Absent => call.header("if-none-match", "*"),
            Expected::Version(version) => call.header("if-match", format!("\"{version}\"")),
        };
        self.read(call).await
    }

    /// Changes settings of a route: those that are named; `null` takes one back to its default.
    ///
    /// # Errors
    /// `unknown-hook` when there is none, `invalid-hook` for what it says then.
    pub async fn patch_hook(&self, name: &str, changes: &Json) -> Result<Hook, ClientError> {
        let call = self.request(Method::PATCH, &self.hook_path(name, &[]), Duration::ZERO).json(changes);
        self.read(call).await
    }

    /// Removes a route.
    ///
    /// # Errors
    /// `unknown-hook` when there is none.
    pub async fn delete_hook(&self, name: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &self.hook_path(name, &[]), Duration::ZERO);
        self.done(call).await
    }

    /// A page of payloads, newest first.
    ///
    /// # Errors
    /// `unknown-hook` when there is neither such a route nor a payload of it.
    pub async fn hook_payloads(
        &self,
        name: &str,
        request: &ListPayloads,
    ) -> Result<HookPayloadList, ClientError> {
        let query: Vec<(&str, String)> = [
            ("since", request.since.map(|at| at.to_string())),
            ("until", request.until.map(|at| at.to_string())),
            ("limit", request.limit.map(|limit| limit.to_string())),
            ("cursor", request.cursor.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| (name, value)))
        .collect();
        self.get_with(&self.hook_path(name, &["payloads"]), &query).await
    }

    /// All of a payload.
    ///
    /// # Errors
    /// `unknown-payload` when there is none, or it is kept no longer.
    pub async fn hook_payload(&self, name: &str, id: &str) -> Result<HookPayloadDetail, ClientError> {
        self.get(&self.hook_path(name, &["payloads", id])).await
    }

    /// Deletes a payload.
    ///
    /// # Errors
    /// `unknown-payload` when there is none.
    pub async fn delete_hook_payload(&self, name: &str, id: &str) -> Result<(), ClientError> {
        let path = self.hook_path(name, &["payloads", id]);
        let call = self.request(Method::DELETE, &path, Duration::ZERO);
        self.done(call).await
    }

    /// Calls the function of a payload again.
    ///
    /// # Errors
    /// `unknown-payload` when there is none, `template-failed` when no input can be made of it.
    pub async fn replay_hook_payload(&self, name: &str, id: &str) -> Result<Replayed, ClientError> {
        let path = self.hook_path(name, &["payloads", id, "replay"]);
        self.read(self.request(Method::POST, &path, Duration::ZERO)).await
    }

    /// A page of events, newest first; of one route if it is named.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn hook_events(
        &self,
        name: Option<&str>,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Result<HookEventList, ClientError> {
        let query: Vec<(&str, String)> =
            [("limit", limit.map(|limit| limit.to_string())), ("cursor", cursor.map(str::to_owned))]
                .into_iter()
                .filter_map(|(name, value)| value.map(|value| (name, value)))
                .collect();
        match name {
            Some(name) => self.get_with(&self.hook_path(name, &["events"]), &query).await,
            None => self.get_with(&["v1", "hooks", "events"], &query).await,
        }
    }

    /// Posts to a route as a sender does: no key of ours, these headers, this body.
    ///
    /// # Errors
    /// `unknown-hook` when there is none, `hook-refused` when the sender could not be verified.
    pub async fn send_hook(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Received, ClientError> {
        let anonymous = Client { key: None, ..self.clone() };
        let path = self.hook_path(name, &[]);
        let mut call = anonymous.request(Method::POST, &path, Duration::ZERO).body(body);
        for (name, value) in headers {
            call = call.header(name, value);
        }
        self.read(call).await
    }

    fn hook_path<'a>(&'a self, name: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&["v1", "hooks", self.namespace.as_str(), name], rest].concat()
    }
}
