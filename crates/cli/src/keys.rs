//! `segno keys …`: API keys, on a server or directly on a store.

use segno::clock::SystemClock;
use segno_api::key::{CreateKey, CreatedKey, Grant, Key, Role};
use segno_server::KeyStore;
use segno_stores::StoreUrl;

use crate::arguments::{Format, KeyRole, KeysArguments, KeysVerb};
use crate::exit::Failure;
use crate::output::{Rows, Table, print, print_rows, short_time, warn_of_unreadable};

/// Rows of a page when keys are listed directly.
const PAGE_ROWS: usize = 100;

/// Where keys are.
enum Place {
    Server(segno_api::Client),
    Store(KeyStore),
}

/// Does what was asked.
pub async fn run(arguments: KeysArguments, format: Format) -> Result<(), Failure> {
    let place = match arguments.store {
        Some(url) => Place::Store(open(&url).await?),
        None => Place::Server(arguments.connection.client()?),
    };
    match arguments.verb {
        KeysVerb::Create { name, role, grants, expires_at } => {
            let grants = grants.iter().map(|grant| parse_grant(grant)).collect::<Result<_, _>>()?;
            let role = match role {
                KeyRole::Admin => Role::Admin,
                KeyRole::Operator => Role::Operator,
                KeyRole::Viewer => Role::Viewer,
                KeyRole::Worker => Role::Worker,
            };
            let made = place.create(CreateKey { name, role, grants, expires_at }).await?;
            let table = Table::default()
                .line("key", &made.secret)
                .line("id", &made.key.id)
                .line("name", &made.key.name);
            eprintln!("Keep the key in a safe place: it is shown this once.");
            print(format, &made, table)
        }
        KeysVerb::List => {
            let keys = place.list().await?;
            let mut rows = Rows::new(["id", "name", "role", "grants", "created", "expires", "last used"]);
            for key in &keys {
                let grants: Vec<_> =
                    key.grants.iter().map(|grant| format!("{}/{}", grant.namespace, grant.tenant)).collect();
                rows.add([
                    key.id.clone(),
                    key.name.clone(),
                    format!("{:?}", key.role).to_lowercase(),
                    grants.join(" "),
                    short_time(key.created_at),
                    key.expires_at.map_or_else(|| "never".to_owned(), short_time),
                    key.last_used_at.map_or_else(|| "never".to_owned(), short_time),
                ]);
            }
            print_rows(format, &keys, &rows)
        }
        KeysVerb::Revoke { id } => {
            place.revoke(&id).await?;
            print(format, &serde_json::json!({ "revoked": id }), Table::default().line("revoked", &id))
        }
    }
}

async fn open(url: &StoreUrl) -> Result<KeyStore, Failure> {
    Ok(KeyStore::new(url.open().await?, SystemClock::shared(), None))
}

fn parse_grant(text: &str) -> Result<Grant, Failure> {
    match text.split_once('/') {
        Some((namespace, tenant)) => Ok(Grant { namespace: namespace.to_owned(), tenant: tenant.to_owned() }),
        None => Err(Failure::Refused(format!("--grant {text}: write NAMESPACE/TENANT, with * for all"))),
    }
}

impl Place {
    async fn create(&self, request: CreateKey) -> Result<CreatedKey, Failure> {
        match self {
            Place::Server(client) => Ok(client.create_key(&request).await?),
            Place::Store(keys) => {
                let made =
                    keys.create(request).await.map_err(|refusal| Failure::Refused(refusal.to_string()))?;
                Ok(CreatedKey { secret: made.secret, key: made.key })
            }
        }
    }

    async fn list(&self) -> Result<Vec<Key>, Failure> {
        let mut keys: Vec<Key> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = match self {
                Place::Server(client) => client.keys(after.as_deref()).await?,
                Place::Store(store) => {
                    let page = store.page(after.as_deref(), PAGE_ROWS).await;
                    page.map_err(|refusal| Failure::Refused(refusal.to_string()))?
                }
            };
            warn_of_unreadable(&page.unreadable);
            keys.extend(page.keys);
            after = page.next_cursor;
            if after.is_none() {
                return Ok(keys);
            }
        }
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Place::Server(client) => Ok(client.revoke_key(id).await?),
            Place::Store(keys) => {
                keys.revoke(id).await.map_err(|refusal| Failure::Refused(refusal.to_string()))
            }
        }
    }
}
