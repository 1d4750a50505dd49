//! Whether a route would take a request, and a command that makes one.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use segno_actions::hooks::{Incoming, Refused, Scheme, Verification};
use segno_api::hook::{HookTested, TestHook};

use super::view;
use crate::app::{App, Tenant};
use crate::extract::{Body, Path};
use crate::problem::{Code, Refusal};
use crate::scope::TenantParameter;

/// Headers of a request that is tried, at most.
const MAX_HEADERS: usize = 100;

/// Says whether a route would take a request with these headers and this body now, and gives a command that sends the body with
/// a signature. Nothing is received, and secrets stay where they are: the command takes the secret from the variable `SECRET`.
#[utoipa::path(post, path = "/v1/hooks/{namespace}/{route}/test", tag = "hooks", params(
    ("namespace" = String, Path, description = "Namespace of the route"),
    ("route" = String, Path, description = "Name of the route"), TenantParameter,
), request_body = TestHook, responses(
    (status = 200, body = HookTested),
))]
pub async fn test(
    State(app): State<App>,
    tenant: Tenant,
    Path((_, route)): Path<(String, String)>,
    headers: HeaderMap,
    Body(request): Body<TestHook>,
) -> Result<Json<HookTested>, Refusal> {
    if request.headers.len() > MAX_HEADERS {
        return Err(Refusal::field("headers", format!("are more than {MAX_HEADERS}")));
    }
    let name = view::name(&route, &tenant)?;
    let found = tenant.hook(&name).await.map_err(|error| tenant.refused(error))?;
    // Tries of secrets are as rare here as where senders post to.
    if !app.hook_rates.take(&found, app.clock.now_ms()) {
        let detail = "the hook gets more requests than it may; slow down";
        return Err(Refusal::new(Code::RateLimited, detail));
    }
    let path = format!("/v1/hooks/{}/{}?tenant={}", tenant.namespace(), found.name, tenant.name());
    let url = format!("{}{path}", address(&app, &headers));
    let curl = command(&found.hook.verification, &url, &request.body);
    let incoming = Incoming {
        headers: request.headers.iter().collect(),
        body: request.body.into(),
        ..Incoming::default()
    };
    let refused = match tenant.would_take(&found, &incoming).await {
        Ok(()) => None,
        Err(Refused::Error(error)) => return Err(tenant.refused(error)),
        Err(refused) => Some(refused),
    };
    Ok(Json(HookTested {
        accepted: refused.is_none(),
        reason: refused.as_ref().map(|refused| refused.reason().to_owned()),
        detail: refused.map(|refused| refused.to_string()),
        curl,
    }))
}

/// Where senders reach the server: as it is set, or as this caller does.
fn address(app: &App, headers: &HeaderMap) -> String {
    if let Some(url) = app.settings.server.public_url() {
        return format!("{}{}", url.origin, url.base.trim_end_matches('/'));
    }
    let scheme = if app.settings.server.tls_certificates.is_some() { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    // A host that a shell would read as more than a text is none.
    let is_plain =
        |host: &&str| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte));
    match host.filter(is_plain) {
        Some(host) => format!("{scheme}://{host}"),
        None => format!("{scheme}://{}", app.settings.server.listen),
    }
}

/// A command that sends a body, signed as a scheme wants it.
fn command(verification: &Verification, url: &str, body: &str) -> String {
    const HMAC: &str = "openssl dgst -sha256 -hmac \"$SECRET\"";
    let (before, signature) = match verification {
        Verification::None => (String::new(), String::new()),
        Verification::By(Scheme::SharedSecret { header, .. }) => {
            // Names of headers may have signs that a shell reads within double quotes, such as backticks.
            (String::new(), format!(" -H {}\"$SECRET\"", quoted(&format!("{header}: "))))
        }
        Verification::By(Scheme::Github { .. }) => (
            format!("SIGNATURE=$(printf %s \"$BODY\" | {HMAC} -r | cut -d' ' -f1); "),
            " -H \"x-hub-signature-256: sha256=$SIGNATURE\"".to_owned(),
        ),
        Verification::By(Scheme::Stripe { .. }) => (
            format!("AT=$(date +%s); SIGNATURE=$(printf '%s.%s' \"$AT\" \"$BODY\" | {HMAC} -r | cut -d' ' -f1); "),
            " -H \"stripe-signature: t=$AT,v1=$SIGNATURE\"".to_owned(),
        ),
        Verification::By(Scheme::StandardWebhooks { .. }) => (
            // The key is what follows the prefix of the secret, decoded; a secret without the prefix is the key itself.
            "AT=$(date +%s); ID=msg_$AT; \
             KEY=$(case \"$SECRET\" in whsec_*) printf %s \"${SECRET#whsec_}\" | base64 -d;; *) printf %s \"$SECRET\";; esac \
             | od -An -v -tx1 | tr -d ' \\n'); \
             SIGNATURE=$(printf '%s.%s.%s' \"$ID\" \"$AT\" \"$BODY\" | \
             openssl dgst -sha256 -mac HMAC -macopt \"hexkey:$KEY\" -binary | base64); "
                .to_owned(),
            " -H \"webhook-id: $ID\" -H \"webhook-timestamp: $AT\" -H \"webhook-signature: v1,$SIGNATURE\"".to_owned(),
        ),
    };
    let (url, body) = (quoted(url), quoted(body));
    format!(
        "BODY={body}; {before}curl -sS -X POST -H 'content-type: application/json'{signature} --data-binary \"$BODY\" {url}"
    )
}

/// A text as one word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn bodies_are_one_word_for_a_shell_whatever_is_in_them() {
        for body in ["{\"a\":1}", "it's $HOME `id` \"x\" \\ $(id)", "", "two\nlines"] {
            let script = format!("BODY={}; printf %s \"$BODY\"", quoted(body));
            let said = Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), body);
        }
    }

    #[test]
    fn names_of_headers_are_words_for_a_shell_and_no_commands() {
        let header = "x`false|echo`$path!&'~";
        let declared = serde_json::json!({ "type": "shared_secret", "header": header, "secrets": [{ "env": "SECRET" }] });
        let verification: Verification = serde_json::from_value(declared).unwrap();
        let script =
            command(&verification, "http://localhost/x", "{}").replace("curl -sS -X POST", "printf '%s\\n'");
        let said = Command::new("sh").arg("-c").arg(script).env("SECRET", "hush").output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(said.contains(&format!("{header}: hush\n")), "{said}");
    }

    /// What the command for a shell signs is what the route verifies.
    #[test]
    fn the_command_signs_as_senders_do() {
        let body = "{\"it's\": 1}";
        for (scheme, secret) in [
            ("github", "hush"),
            ("stripe", "whsec_hush"),
            ("standard_webhooks", "whsec_aGVsbG8gaGVsbG8gaGVsbG8gaGVsbG8="),
            ("standard_webhooks", "hush"),
        ] {
            let declared = serde_json::json!({ "type": scheme, "secrets": [{ "env": "SECRET" }] });
            let verification: Verification = serde_json::from_value(declared).unwrap();
            let command = command(&verification, "http://localhost/x", body);
            // Headers in place of a request.
            let script = command.replace("curl -sS -X POST", "printf '%s\\n'");
            let script = format!("date() {{ echo 1700000000; }}; {script}");
            let said = Command::new("sh").arg("-c").arg(script).env("SECRET", secret).output().unwrap();
            let said = String::from_utf8(said.stdout).unwrap();
            let id = "msg_1700000000";
            let expected = segno_actions::hooks::signed_headers(
                &verification,
                secret,
                id,
                1_700_000_000,
                body.as_bytes(),
            );
            for (name, value) in expected.unwrap() {
                assert!(said.contains(&format!("{name}: {value}")), "{scheme}: {name}: {value}\n{said}");
            }
        }
    }
}
