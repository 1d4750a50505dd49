//! Which server a command talks to: flags, environment and profiles.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use segno_api::Client;

use super::profiles;
use crate::exit::Failure;
use crate::output::Output;

/// Which server, and where on it.
#[derive(Debug, Args)]
pub struct Connection {
    /// Address of the server.
    #[arg(long, global = true, env = "SEGNO_SERVER", value_name = "URL", help_heading = "Server")]
    pub server: Option<String>,
    /// API key; better in the environment or in a profile, where other users of the machine do not see it.
    #[arg(
        long,
        global = true,
        env = "SEGNO_KEY",
        hide_env_values = true,
        value_name = "KEY",
        help_heading = "Server"
    )]
    pub key: Option<String>,
    /// Server, key, namespace and tenant from a profile of this name.
    #[arg(long, global = true, env = "SEGNO_PROFILE", value_name = "NAME", help_heading = "Server")]
    pub profile: Option<String>,
    /// Namespace.
    #[arg(long, global = true, env = "SEGNO_NAMESPACE", value_name = "NAME", help_heading = "Server")]
    pub namespace: Option<String>,
    /// Tenant.
    #[arg(long, global = true, env = "SEGNO_TENANT", value_name = "NAME", help_heading = "Server")]
    pub tenant: Option<String>,
}

/// The server when nothing names one.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7070";

impl Connection {
    /// A client. What was said wins over the profile.
    ///
    /// # Errors
    /// When the profile or the address is wrong.
    pub fn client(&self, output: &Output) -> Result<Client, Failure> {
        let profile = profiles::load(self.profile.as_deref(), output)?;
        let pick = |said: &Option<String>, stored: Option<String>| said.clone().or(stored);
        let server = pick(&self.server, profile.server).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let or_default = |name: Option<String>| name.unwrap_or_else(|| "default".to_owned());
        let namespace = or_default(pick(&self.namespace, profile.namespace));
        let tenant = or_default(pick(&self.tenant, profile.tenant));
        let client = Client::new(&server).map_err(|error| match error.is_certificate() {
            true => Failure::Server(error),
            false => Failure::Refused(format!("{error}; correct --server, SEGNO_SERVER or the profile")),
        })?;
        let client = client.scope(namespace, tenant).retry_for(RETRY_FOR);
        Ok(match pick(&self.key, profile.key) {
            Some(key) => client.key(sendable(key)?),
            None => client,
        })
    }
}

/// The same client, for a command that would be silent while its calls are repeated: the first time
/// that a repetition has failed too, one line on stderr says what it waits for. Not for programs,
/// which read what is printed there.
pub fn telling_why_it_waits(client: Client, output: &Output) -> Client {
    if output.format.is_for_programs() {
        return client;
    }
    let is_told = AtomicBool::new(false);
    client.on_retry(move |failed| {
        if !is_told.swap(true, Ordering::Relaxed) {
            eprintln!("waiting for the server, trying again: {failed}");
        }
    })
}

/// A key that can be sent. One from a file or a form may have a line end or other characters that no key has.
fn sendable(key: String) -> Result<String, Failure> {
    match key.chars().find(|sign| !sign.is_ascii_graphic()) {
        Some(sign) => Err(Failure::Refused(format!(
            "the API key has the character {sign:?}, which no key has; correct --key, SEGNO_KEY or the profile"
        ))),
        None => Ok(key),
    }
}

/// How long a command repeats a call while the server cannot be reached: long enough for a restart, and not so long that a
/// wrong address looks like a server.
pub const RETRY_FOR: Duration = Duration::from_secs(5);
