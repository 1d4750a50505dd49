//! Namespace and tenant of a request, and the ids that follow from them.
//!
//! The store knows `namespace/tenant/id`. The first two are slugs that cannot contain a slash, so one tenant is one prefix
//! and no id can reach into another one.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use segno_api::key::Grant;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::problem::{Code, Refusal};

/// Namespace and tenant when a request does not name them.
pub const DEFAULT: &str = "default";

/// Parameters that [`Scope`] reads.
pub const SCOPE_PARAMETERS: [&str; 2] = ["namespace", "tenant"];

/// Longest namespace or tenant in bytes.
pub const MAX_SLUG_BYTES: usize = 63;

/// Where a request takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    namespace: String,
    tenant: String,
    prefix: String,
}

/// The query parameters that every route of a tenant takes.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameters; Scope reads them")]
pub struct ScopeParameters {
    /// Namespace; `default` without it.
    #[param(pattern = "^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", max_length = 63)]
    namespace: Option<String>,
    /// Tenant; `default` without it.
    #[param(pattern = "^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", max_length = 63)]
    tenant: Option<String>,
}

/// The query parameter of routes that have the namespace in their path.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "documents the parameter; Scope reads it")]
pub struct TenantParameter {
    /// Tenant; `default` without it.
    #[param(pattern = "^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$", max_length = 63)]
    tenant: Option<String>,
}

impl Default for Scope {
    fn default() -> Self {
        Scope::new(DEFAULT, DEFAULT).expect("the default is a slug")
    }
}

impl Scope {
    /// A scope of two slugs.
    ///
    /// # Errors
    /// When one of them is not a slug.
    pub fn new(namespace: &str, tenant: &str) -> Result<Self, Refusal> {
        check_slug("namespace", namespace)?;
        check_slug("tenant", tenant)?;
        Ok(Scope {
            namespace: namespace.to_owned(),
            tenant: tenant.to_owned(),
            prefix: format!("{namespace}/{tenant}/"),
        })
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// What all stored ids of this scope begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The stored form of an id that something new is to have.
    ///
    /// # Errors
    /// When it is empty or has white space around it, which the prefix would hide from the engine.
    pub fn stored_new(&self, id: &str) -> Result<String, Refusal> {
        if id.is_empty() || id.trim() != id {
            return Err(Refusal::field("id", "is empty, or starts or ends with white space"));
        }
        if matches!(id, "." | ".." | "bulk") {
            return Err(Refusal::field("id", "cannot be '.', '..' or 'bulk', which no path leads to"));
        }
        Ok(self.stored(id))
    }

    /// The stored form of an id.
    pub fn stored(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    /// What all stored ids of the scope of an id begin with; empty for an id that has none. Namespaces and tenants have no
    /// slash, so the first two end it.
    pub fn prefix_of(stored: &str) -> &str {
        let slashes = stored.match_indices('/').nth(1);
        slashes.map_or("", |(place, _)| &stored[..=place])
    }

    /// The caller's form of a stored id; `None` when it belongs to somebody else.
    pub fn shown<'a>(&self, stored: &'a str) -> Option<&'a str> {
        stored.strip_prefix(self.prefix.as_str())
    }

    /// A text with the stored ids in it as the caller knows them.
    pub fn hide_prefix(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut taken = 0;
        for (at, prefix) in text.match_indices(&self.prefix) {
            // Behind a slash or a name it is part of a path, such as that of a file, and no id.
            let is_inside = |c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
            if !text[..at].ends_with(is_inside) {
                shown.push_str(&text[taken..at]);
                taken = at + prefix.len();
            }
        }
        shown.push_str(&text[taken..]);
        shown
    }

    /// The same scope as functions know it.
    pub fn for_functions(&self) -> segno_actions::functions::Scope {
        segno_actions::functions::Scope::new(&self.namespace, &self.tenant)
            .expect("a slug of the server is a slug of functions, which may have more characters")
    }

    /// The scope that a request names in its query, or elsewhere: both may say the same, and nothing else.
    ///
    /// # Errors
    /// When a name is no slug or is given twice, or the caller has no grant for it.
    pub fn named(parts: &Parts, namespace: Option<String>, tenant: Option<String>) -> Result<Self, Refusal> {
        let scope = Scope::meant(parts, namespace, tenant)?;
        let caller = parts.extensions.get::<Caller>();
        if !caller.is_some_and(|caller| caller.may_enter(&scope)) {
            let detail = format!(
                "the key has no grant for namespace {:?}, tenant {:?}",
                scope.namespace, scope.tenant
            );
            return Err(Refusal::new(Code::Forbidden, detail));
        }
        Ok(scope)
    }

    /// The same, whether or not the caller has a grant for it.
    ///
    /// # Errors
    /// When a name is no slug or is given twice.
    pub fn meant(parts: &Parts, namespace: Option<String>, tenant: Option<String>) -> Result<Self, Refusal> {
        let mut in_query = [None, None];
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            let place = match &*name {
                "namespace" => &mut in_query[0],
                "tenant" => &mut in_query[1],
                _ => continue,
            };
            if place.replace(value.into_owned()).is_some() {
                return Err(Refusal::field(name, "is given twice"));
            }
        }
        let agreed = |field: &str, one: Option<String>, other: Option<String>| match (one, other) {
            (Some(one), Some(other)) if one != other => {
                Err(Refusal::field(field, "is one in the query and another in the body or path; say it once"))
            }
            (one, other) => Ok(one.or(other).unwrap_or_else(|| DEFAULT.to_owned())),
        };
        let [query_namespace, query_tenant] = in_query;
        Scope::new(
            &agreed("namespace", query_namespace, namespace)?,
            &agreed("tenant", query_tenant, tenant)?,
        )
    }

    /// The scope that a request names in its query and path, whether or not the caller has a grant for it.
    ///
    /// # Errors
    /// Those of [`Scope::meant`].
    pub async fn addressed(parts: &mut Parts) -> Result<Self, Refusal> {
        let in_path = namespace_in_path(parts).await;
        Scope::meant(parts, in_path, None)
    }

    /// The scope of a request.
    ///
    /// # Errors
    /// Those of [`Scope::named`].
    pub async fn of_request(parts: &mut Parts) -> Result<Self, Refusal> {
        if let Some(scope) = parts.extensions.get::<Scope>() {
            return Ok(scope.clone());
        }
        let in_path = namespace_in_path(parts).await;
        let scope = Scope::named(parts, in_path, None)?;
        parts.extensions.insert(scope.clone());
        Ok(scope)
    }

    /// Whether a grant covers this scope.
    pub fn is_covered_by(&self, grant: &Grant) -> bool {
        let covers = |granted: &str, wanted: &str| granted == "*" || granted == wanted;
        covers(&grant.namespace, &self.namespace) && covers(&grant.tenant, &self.tenant)
    }
}

/// Whether a text is a slug.
///
/// # Errors
/// Says what is allowed.
pub fn check_slug(field: &str, text: &str) -> Result<(), Refusal> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    let outer = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    let is_slug = bytes.len() <= MAX_SLUG_BYTES
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().copied().all(inner);
    if is_slug {
        return Ok(());
    }
    let rule = format!(
        "must be lowercase letters, digits, '-' or '_', begin and end with a letter or digit, and have at most \
         {MAX_SLUG_BYTES} characters"
    );
    Err(Refusal::field(field, rule))
}

/// The namespace of a path that has one, as in `/v1/hooks/{namespace}/{route}`.
async fn namespace_in_path(parts: &mut Parts) -> Option<String> {
    let in_path = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    in_path.iter().find(|(name, _)| *name == "namespace").map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_have_no_room_for_tricks() {
        for (text, ok) in [
            ("default", true),
            ("team-1_x", true),
            ("a", true),
            ("", false),
            ("-a", false),
            ("a-", false),
            ("A", false),
            ("a/b", false),
            ("a.b", false),
            ("*", false),
            ("ä", false),
            (&"a".repeat(64), false),
        ] {
            assert_eq!(check_slug("tenant", text).is_ok(), ok, "{text:?}");
        }
    }

    #[test]
    fn the_prefix_of_an_id_is_that_of_its_scope() {
        let scope = Scope::new("shop", "eu").unwrap();
        for (id, prefix) in [
            (scope.stored("a/b").as_str(), scope.prefix()),
            ("shop/eu/", scope.prefix()),
            ("shop/eu", ""),
            ("plain", ""),
        ] {
            assert_eq!(Scope::prefix_of(id), prefix, "{id}");
        }
    }

    #[test]
    fn ids_go_in_and_out_and_others_stay_hidden() {
        let scope = Scope::new("shop", "eu").unwrap();
        assert_eq!(scope.stored("a/b"), "shop/eu/a/b");
        assert!(scope.stored_new("a b").is_ok());
        for bad in ["", " a", "a\t", ".", "..", "bulk"] {
            assert!(scope.stored_new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(scope.shown("shop/eu/a/b"), Some("a/b"));
        assert_eq!(scope.shown("shop/us/a"), None);
        assert_eq!(scope.hide_prefix("instance \"shop/eu/a\" is away"), "instance \"a\" is away");
        assert_eq!(scope.hide_prefix("shop/eu/shop/eu/a, shop/eu/b"), "shop/eu/a, b");
        let path = "/srv/shop/eu/members.csv: it is away; files of this tenant are below /srv/shop/eu/";
        assert_eq!(scope.hide_prefix(path), path);
    }
}
