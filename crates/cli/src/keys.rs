//! `segno keys …`: API keys, on a server or directly on a store.

use segno::clock::SystemClock;
use segno_api::client::PageRequest;
use segno_api::key::{CreateKey, CreatedKey, Grant, Key, Role, SHOWN_ONCE};
use segno_server::{KeyStore, Refusal};
use segno_stores::StoreUrl;
use serde::Serialize;

use crate::arguments::{KeyRole, KeysArguments, KeysVerb};
use crate::exit::Failure;
use crate::output::{Output, Page, Rows, Table};

/// Rows of a page when keys are listed directly and no number is given.
const PAGE_ROWS: usize = 100;

/// A new key for programs: what a row of `keys list` has, and the secret.
#[derive(Serialize)]
struct Created<'k> {
    #[serde(flatten)]
    key: &'k Key,
    secret: &'k str,
}

/// A key whose secret was in an answer that did not arrive.
fn secret_is_lost(id: &str) -> Failure {
    let text = format!(
        "the key {id} was made, but its secret was in an answer that did not arrive; revoke it with `segno keys revoke {id}`, and create \
         another one"
    );
    Failure::Answered { status: 409, code: "conflict", text }
}

/// Where keys are.
enum Place {
    Server(segno_api::Client),
    Store { keys: KeyStore, url: StoreUrl },
}

/// Does what was asked.
pub async fn run(arguments: KeysArguments, output: &Output) -> Result<(), Failure> {
    let place = match arguments.store {
        Some(url) => Place::Store { keys: open(&url, &arguments.verb).await?, url },
        None => Place::Server(arguments.connection.client(output)?),
    };
    match arguments.verb {
        KeysVerb::Create { name, role, grants, expires_at } => {
            let grants = grants.iter().map(|grant| parse_grant(grant)).collect::<Result<_, _>>()?;
            let expires_at = output.optional_moment(expires_at)?;
            let role = match role {
                KeyRole::Admin => Role::Admin,
                KeyRole::Operator => Role::Operator,
                KeyRole::Viewer => Role::Viewer,
                KeyRole::Worker => Role::Worker,
            };
            let made = place.create(CreateKey { name, role, grants, expires_at }).await?;
            if made.secret == SHOWN_ONCE {
                return Err(secret_is_lost(&made.key.id));
            }
            let table = Table::default()
                .line("id", &made.key.id)
                .line("name", &made.key.name)
                .line("secret", &made.secret);
            output.hint("Keep the secret in a safe place: it is shown only once. Commands take it as --key or SEGNO_KEY.");
            output.print(&Created { key: &made.key, secret: &made.secret }, table)
        }
        KeysVerb::List { paging } => {
            let page = paging.gather(|request| place.page(request)).await?;
            let mut rows = Rows::new(["id", "name", "role", "grants", "created", "expires", "last used"]);
            for key in &page.items {
                let grants: Vec<_> =
                    key.grants.iter().map(|grant| format!("{}/{}", grant.namespace, grant.tenant)).collect();
                rows.add([
                    key.id.clone(),
                    key.name.clone(),
                    role(key.role).to_owned(),
                    grants.join(" "),
                    output.time(key.created_at),
                    key.expires_at.map_or_else(|| "never".to_owned(), |at| output.time(at)),
                    key.last_used_at.map_or_else(|| "never".to_owned(), |at| output.time(at)),
                ]);
            }
            output.list(&page, &rows)
        }
        KeysVerb::Revoke { id } => {
            place.revoke(&id).await?;
            output.print(&serde_json::json!({ "revoked": id }), Table::default().line("revoked", &id))
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Operator => "operator",
        Role::Viewer => "viewer",
        Role::Worker => "worker",
    }
}

/// Opens the store. Making a key may be the first thing that happens to it; the rest needs one that is there. A list is read
/// without writing, so it works on a full disk and on one that is mounted read-only.
async fn open(url: &StoreUrl, verb: &KeysVerb) -> Result<KeyStore, Failure> {
    let store = match verb {
        KeysVerb::Create { .. } => url.open_or_create().await?,
        KeysVerb::List { .. } => url.read_records(&KeyStore::KINDS).await?,
        KeysVerb::Revoke { .. } => url.open_existing().await?,
    };
    Ok(KeyStore::new(store, SystemClock::shared(), None))
}

/// The failure of something that was done without a server.
fn refused(store: &StoreUrl) -> impl FnOnce(Refusal) -> Failure {
    let store = store.to_string();
    move |refusal| {
        let status = refusal.status();
        let text = match status.is_server_error() {
            // There is no log to look into, as a server has one.
            true => format!(
                "{}; look at the disk of {store}, and at what `segno store check {store}` says",
                refusal.detail()
            ),
            false => refusal.detail().to_owned(),
        };
        Failure::Answered { status: status.as_u16(), code: refusal.code(), text }
    }
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
            Place::Store { keys, url } => {
                let made = keys.create(request).await.map_err(refused(url))?;
                Ok(CreatedKey { secret: made.secret, key: made.key })
            }
        }
    }

    async fn page(&self, request: PageRequest) -> Result<Page<Key>, Failure> {
        let page = match self {
            Place::Server(client) => client.keys(request).await?,
            Place::Store { keys, url } => {
                let page = keys.page(request.cursor.as_deref(), request.limit.unwrap_or(PAGE_ROWS)).await;
                page.map_err(refused(url))?
            }
        };
        Ok(Page::of(page.keys, page.unreadable, page.next_cursor))
    }

    async fn revoke(&self, id: &str) -> Result<(), Failure> {
        match self {
            Place::Server(client) => Ok(client.revoke_key(id).await?),
            Place::Store { keys, url } => keys.revoke(id).await.map_err(refused(url)),
        }
    }
}
