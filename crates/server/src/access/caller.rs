//! Who asks, and what roles allow.

use std::sync::Arc;

use segno_api::key::{Grant, Role};

use crate::scope::{DEFAULT, Scope};

/// What a group of routes needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Reading within a tenant.
    Read,
    /// Changing things within a tenant.
    Operate,
    /// Fetching and answering work.
    Work,
    /// Sending messages: those of workers, or others that change things.
    Messages,
    /// Reading what concerns all tenants.
    System,
    /// Keys and the audit log.
    Admin,
    /// A key that works, whatever it is for.
    Known,
}

/// Who asks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    key_id: Option<Arc<str>>,
    session: Option<Arc<str>>,
    role: Role,
    grants: Arc<[Grant]>,
}

impl Caller {
    /// The holder of a key.
    pub fn with_key(key_id: &str, role: Role, grants: &[Grant]) -> Self {
        Caller { key_id: Some(key_id.into()), session: None, role, grants: grants.into() }
    }

    /// Somebody on a server without authentication: may do everything.
    pub fn anonymous() -> Self {
        let everywhere = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
        Caller { key_id: None, session: None, role: Role::Admin, grants: [everywhere].into() }
    }

    /// The same caller, by a session of a browser that was made with the key.
    pub fn in_session(self, session: &str) -> Self {
        Caller { session: Some(session.into()), ..self }
    }

    /// Id of the session, if that is how the caller showed who it is.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// What the key is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Id of the key.
    pub fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// Whether the role allows it, and for what concerns all tenants, whether the grants do.
    pub fn may(&self, need: Need) -> bool {
        let by_role = match need {
            Need::Read | Need::System => matches!(self.role, Role::Admin | Role::Operator | Role::Viewer),
            Need::Operate => matches!(self.role, Role::Admin | Role::Operator),
            Need::Work => matches!(self.role, Role::Admin | Role::Worker),
            Need::Messages => matches!(self.role, Role::Admin | Role::Operator | Role::Worker),
            Need::Admin => self.role == Role::Admin,
            Need::Known => true,
        };
        let concerns_all = matches!(need, Need::System | Need::Admin);
        by_role
            && (!concerns_all
                || self.grants.iter().any(|grant| grant.namespace == "*" && grant.tenant == "*"))
    }

    /// The tenant that stands for the caller where a request names none: the first of its grants, and the default in
    /// place of `*`.
    pub fn home(&self) -> Scope {
        let one = |name: &str| if name == "*" { DEFAULT.to_owned() } else { name.to_owned() };
        let first = self.grants.first();
        let scope = first.map(|grant| Scope::new(&one(&grant.namespace), &one(&grant.tenant)));
        scope.and_then(Result::ok).unwrap_or_default()
    }

    /// Where it may work.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Whether a grant covers the scope.
    pub fn may_enter(&self, scope: &Scope) -> bool {
        self.grants.iter().any(|grant| scope.is_covered_by(grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_do_what_it_is_for() {
        let everywhere = [Grant { namespace: "*".to_owned(), tenant: "*".to_owned() }];
        let one = [Grant { namespace: "shop".to_owned(), tenant: "eu".to_owned() }];
        let all = [Need::Read, Need::Operate, Need::Work, Need::Messages, Need::System, Need::Admin];
        for (role, wide, narrow) in [
            (Role::Admin, [true, true, true, true, true, true], [true, true, true, true, false, false]),
            (Role::Operator, [true, true, false, true, true, false], [true, true, false, true, false, false]),
            (
                Role::Viewer,
                [true, false, false, false, true, false],
                [true, false, false, false, false, false],
            ),
            (
                Role::Worker,
                [false, false, true, true, false, false],
                [false, false, true, true, false, false],
            ),
        ] {
            assert_eq!(all.map(|need| Caller::with_key("k", role, &everywhere).may(need)), wide, "{role:?}");
            assert_eq!(all.map(|need| Caller::with_key("k", role, &one).may(need)), narrow, "{role:?}");
        }
    }

    #[test]
    fn a_caller_is_at_home_where_its_first_grant_is() {
        let caller = |grants: &[(&str, &str)]| {
            let grants = grants.iter().map(|(namespace, tenant)| Grant {
                namespace: (*namespace).to_owned(),
                tenant: (*tenant).to_owned(),
            });
            Caller::with_key("k", Role::Viewer, &Vec::from_iter(grants)).home()
        };
        for (grants, home) in [
            (&[("shop", "eu"), ("lab", "*")][..], "shop/eu/"),
            (&[("lab", "*")], "lab/default/"),
            (&[("*", "*")], "default/default/"),
            (&[], "default/default/"),
        ] {
            assert_eq!(caller(grants).prefix(), home);
        }
    }

    #[test]
    fn a_grant_opens_its_scope_and_no_other() {
        let grant = |namespace: &str, tenant: &str| Grant {
            namespace: namespace.to_owned(),
            tenant: tenant.to_owned(),
        };
        let caller = Caller::with_key("k", Role::Viewer, &[grant("shop", "eu"), grant("lab", "*")]);
        for (namespace, tenant, may) in
            [("shop", "eu", true), ("shop", "us", false), ("lab", "any", true), ("other", "eu", false)]
        {
            assert_eq!(
                caller.may_enter(&Scope::new(namespace, tenant).unwrap()),
                may,
                "{namespace}/{tenant}"
            );
        }
    }
}
