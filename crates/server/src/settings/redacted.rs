//! Settings without secrets, for people who may see the settings and need not know the secrets.

/// What stands in the place of a secret.
const REDACTED: &str = "***";

/// Parts of a setting's path below which every value may be a secret: users write them as they like.
const FREE_TABLES: [&str; 3] = [".headers.", ".env.", ".environment."];

/// Words in the last part of a setting's path that name a secret.
const SECRET_NAMES: [&str; 4] = ["password", "secret", "token", "api_key"];

/// Parameters of URLs and connection strings that are secrets, in lower case.
const SECRET_PARAMETERS: [&str; 6] =
    ["password=", "sharedaccesskey=", "accountkey=", "sig=", "secret=", "token="];

/// A value without what is secret in it. `value` is TOML.
pub fn redacted(setting: &str, value: &str) -> String {
    let last = setting.rsplit('.').next().unwrap_or(setting).to_lowercase();
    let is_free = FREE_TABLES.iter().any(|table| setting.contains(table));
    if is_free || SECRET_NAMES.iter().any(|name| last.contains(name)) {
        return format!("\"{REDACTED}\"");
    }
    without_parameters(&without_user_information(value))
}

/// Takes the user and the password out of every URL.
fn without_user_information(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        // Before a path, a query or the end of the text; a password may contain an @.
        let end = after.find(['/', '?', '#', '"', '\'', ' ', ',']).unwrap_or(after.len());
        let (authority, behind) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                shown.push_str(REDACTED);
                shown.push('@');
                shown.push_str(host);
            }
            None => shown.push_str(authority),
        }
        rest = behind;
    }
    shown.push_str(rest);
    shown
}

/// Takes the values of secret parameters out.
fn without_parameters(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let lower = rest.to_ascii_lowercase();
        let found = SECRET_PARAMETERS.iter().filter_map(|name| Some((lower.find(name)?, name.len()))).min();
        let Some((at, length)) = found else { break };
        let (before, after) = rest.split_at(at + length);
        shown.push_str(before);
        shown.push_str(REDACTED);
        let end = after.find(['&', ';', '"', '\'', ' ', ',']).unwrap_or(after.len());
        rest = &after[end..];
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_and_everything_else_is_kept() {
        for (setting, value, expected) in [
            (
                "store.url",
                "\"postgres://ada:pass@w@db:5432/x?schema=s\"",
                "\"postgres://***@db:5432/x?schema=s\"",
            ),
            (
                "store.url",
                "\"postgres://db/x?password=hush&schema=s\"",
                "\"postgres://db/x?password=***&schema=s\"",
            ),
            ("store.url", "\"segno:/var/lib/segno\"", "\"segno:/var/lib/segno\""),
            (
                "bus.url",
                "\"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=aGk=;EntityPath=p\"",
                "\"Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=***;EntityPath=p\"",
            ),
            ("functions.pay.http.headers.Authorization", "\"Bearer hush\"", "\"***\""),
            ("functions.tool.process.env.KEY", "\"hush\"", "\"***\""),
            ("ledger.secret_access_key", "\"hush\"", "\"***\""),
            ("server.tls_key", "\"/etc/segno/key.pem\"", "\"/etc/segno/key.pem\""),
            ("server.roles", "[\"api\", \"worker\"]", "[\"api\", \"worker\"]"),
            ("x", "[\"http://a:b@c/d\", \"https://e:f@g\"]", "[\"http://***@c/d\", \"https://***@g\"]"),
        ] {
            assert_eq!(redacted(setting, value), expected, "{setting}");
        }
    }
}
