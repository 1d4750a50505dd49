//! What stored functions may do. The people who may store one are not always those who run the server.
//!
//! A declaration in the node's own configuration may do everything. One that came in through the API could otherwise start
//! any program, call what only the node can reach, and send the node's own secrets to itself.

use std::path::{Component, Path, PathBuf};

use super::error::FunctionError;
use super::function::{Executor, Function};
use super::names::Scope;
use super::remote::RemoteSettings;
use super::secret::SecretReference;

/// Why a stored function does not get to private addresses.
const PRIVATE_REFUSED: &str = "private addresses are allowed to functions of the node's configuration only";

/// What stored functions may do besides being remote and calling public addresses. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredPolicy {
    /// Whether they may be tools: whoever may store one can then run any program as the node's user.
    pub processes: bool,
    /// Whether they may allow themselves private addresses.
    pub private_addresses: bool,
    /// They may read secrets in files below `<this>/<namespace>/<tenant>/`.
    pub secret_directory: Option<PathBuf>,
    /// They may read environment variables that begin with this, whatever their tenant.
    pub secret_variables: Option<String>,
}

impl StoredPolicy {
    /// # Errors
    /// `function-not-permitted` with the setting, why it is refused, and what to do.
    pub(crate) fn check(&self, scope: &Scope, function: &Function) -> Result<(), FunctionError> {
        match &function.executor {
            Executor::Rust(_) => {
                return Err(refuse("executor", "code is registered by the program, it cannot be stored"));
            }
            Executor::Process(_) if !self.processes => {
                let problem = "tools are declared in the settings of the server, or \
                               `stored_functions.processes` there allows storing them";
                return Err(refuse("executor", problem));
            }
            Executor::Http(settings) if settings.guard()?.is_open() && !self.private_addresses => {
                let field = if settings.allow_private { "allow_private" } else { "allow_hosts" };
                return Err(refuse(field, PRIVATE_REFUSED));
            }
            Executor::Remote(RemoteSettings { push: Some(push) })
                if push.to_http().guard()?.is_open() && !self.private_addresses =>
            {
                let field = if push.allow_private { "push.allow_private" } else { "push.allow_hosts" };
                return Err(refuse(field, PRIVATE_REFUSED));
            }
            _ => {}
        }
        for (field, secret) in function.secrets() {
            self.check_secret(scope, &field, secret)?;
        }
        Ok(())
    }

    pub(super) fn check_secret(
        &self,
        scope: &Scope,
        field: &str,
        secret: &SecretReference,
    ) -> Result<(), FunctionError> {
        let allowed = match secret {
            SecretReference::Env(name) => {
                self.secret_variables.as_ref().is_some_and(|prefix| name.starts_with(prefix.as_str()))
            }
            SecretReference::File(path) => self.secret_directory.as_ref().is_some_and(|directory| {
                let own = directory.join(scope.namespace.as_str()).join(scope.tenant.as_str());
                path.starts_with(own) && has_no_way_up(path)
            }),
        };
        if allowed {
            return Ok(());
        }
        let setting = match secret {
            SecretReference::Env(_) => {
                "`stored_functions.secret_variables` in the settings of the server to the beginning of its name"
            }
            SecretReference::File(_) => {
                "`stored_functions.secret_directory` in the settings of the server and put the file below <directory>/<namespace>/<tenant>/"
            }
        };
        let problem = format!("what came in through the API may not read the {secret}; set {setting}");
        Err(refuse(field, problem))
    }
}

fn has_no_way_up(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn refuse(field: impl Into<String>, problem: impl Into<String>) -> FunctionError {
    FunctionError::NotPermitted { field: field.into(), problem: problem.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(policy: &StoredPolicy, function: Value) -> Result<(), String> {
        let function: Function = serde_json::from_value(function).unwrap();
        let scope = Scope::new("eu", "acme").unwrap();
        policy.check(&scope, &function).map_err(|error| {
            assert_eq!(error.code(), "function-not-permitted");
            error.to_string()
        })
    }

    fn with_header(secret: Value) -> Value {
        json!({ "executor": "http", "url": "https://example.org", "headers": { "x-key": secret } })
    }

    #[test]
    fn a_stored_function_may_do_little_unless_told() {
        let strict = StoredPolicy::default();
        assert_eq!(check(&strict, json!({ "executor": "remote" })), Ok(()));
        assert_eq!(check(&strict, with_header(json!("plain"))), Ok(()));
        for (function, field) in [
            (json!({ "executor": "rust" }), "executor"),
            (json!({ "executor": "process", "command": ["id"] }), "executor"),
            (json!({ "executor": "http", "url": "https://x.org", "allow_private": true }), "allow_private"),
            (json!({ "executor": "http", "url": "https://x.org", "allow_hosts": ["db"] }), "allow_hosts"),
            (with_header(json!({ "env": "AWS_SECRET_ACCESS_KEY" })), "headers.x-key"),
            (with_header(json!({ "file": "/etc/shadow" })), "headers.x-key"),
            (
                json!({ "executor": "remote", "push": { "url": "https://x.org", "secret": { "env": "HOME" } } }),
                "push.secret",
            ),
            (
                json!({ "executor": "remote", "push": { "url": "https://x.org", "secret": { "env": "S" }, "allow_private": true } }),
                "push.allow_private",
            ),
        ] {
            let error = check(&strict, function.clone()).unwrap_err();
            assert!(error.starts_with(&format!("{field}: ")), "{function}: {error}");
        }
    }

    #[test]
    fn secrets_of_other_tenants_stay_out_of_reach() {
        let policy = StoredPolicy {
            processes: true,
            private_addresses: true,
            secret_directory: Some("/run/secrets".into()),
            secret_variables: Some("SHARED_".to_owned()),
        };
        assert_eq!(check(&policy, json!({ "executor": "process", "command": ["id"] })), Ok(()));
        assert_eq!(check(&policy, with_header(json!({ "file": "/run/secrets/eu/acme/key" }))), Ok(()));
        assert_eq!(check(&policy, with_header(json!({ "env": "SHARED_KEY" }))), Ok(()));
        for secret in [
            json!({ "file": "/run/secrets/eu/other/key" }),
            json!({ "file": "/run/secrets/eu/acmeplus/key" }),
            json!({ "file": "/run/secrets/eu/acme/../other/key" }),
            json!({ "file": "/run/secrets/key" }),
            json!({ "env": "PATH" }),
        ] {
            assert!(check(&policy, with_header(secret.clone())).is_err(), "{secret}");
        }
    }
}
