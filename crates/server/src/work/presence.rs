//! Which workers there are. A node knows its own by heart and writes them down now and then, for the other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::store::{Expect, ListRecords, ProviderError, ReadableRecords, RecordBatch, RecordWrite, Store};
use segno::work::Lease;
use segno_actions::{Listed, Unreadable};
use segno_api::worker::Worker;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::roster::{Heard, Known, Roster};
use super::seal::HeldLease;
use crate::access::timestamp;
use crate::listen::until_stopped;
use crate::operation::damage;
use crate::scope::Scope;

/// Kind of the records.
const KIND: &str = "segno.worker";

/// A worker is written down at most this often.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// A worker that was not heard of for so long is forgotten: twice the longest wait of a fetch.
const REMEMBER: Duration = Duration::from_secs(120);

/// Most workers that one question about all of them looks at.
const MAX_LISTED: usize = 10_000;

/// Most records of one commit.
const MAX_BATCH: usize = 500;

/// Most bytes of one commit, unless one record alone has more.
const MAX_BATCH_BYTES: usize = 1024 * 1024;

/// Most leases of one worker that other nodes are told of.
const MAX_WRITTEN_LEASES: usize = 1_000;

/// Most workers of other nodes that a question about one call looks at.
const MAX_SEARCHED: usize = 1_000;

/// Workers that are read at once.
const PAGE: usize = 500;

/// A worker that holds a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its name.
    pub worker: String,
    /// When it last fetched or extended the lease, in Unix milliseconds.
    pub heard_at_ms: u64,
}

/// Workers that ask for calls of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// How many were found.
    pub workers: usize,
    /// Whether there may be others: not all of them were looked at.
    pub is_bound: bool,
}

/// A worker as it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct StoredWorker {
    worker: String,
    functions: Vec<String>,
    tags: Vec<String>,
    #[serde(default = "yes")]
    takes_untagged: bool,
    /// The pools that it asked for lately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pools: Vec<String>,
    /// The one that it asked for last, which is all that earlier versions wrote.
    #[serde(default, skip_serializing)]
    pool: Option<String>,
    in_flight: u64,
    /// Calls of each pool that it holds; earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_flight_by_pool: Option<BTreeMap<String, u64>>,
    seen_at_ms: u64,
    node: String,
    /// Numbers of the locks that it holds, and when it last fetched or extended each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    leases: Vec<(u64, u64)>,
}

fn yes() -> bool {
    true
}

impl StoredWorker {
    /// The pools that it works for, with the calls of each that it holds.
    fn held_by_pool(&self) -> BTreeMap<String, u64> {
        let mut pools = self.in_flight_by_pool.clone().unwrap_or_default();
        for pool in self.pools.iter().chain(&self.pool) {
            let held = if self.in_flight_by_pool.is_some() { 0 } else { self.in_flight };
            pools.entry(pool.clone()).or_insert(held);
        }
        pools
    }

    /// Whether it asks for calls of a function, with the tag if there is one.
    fn takes(&self, function: &str, tag: Option<&str>) -> bool {
        self.functions.iter().any(|own| own == function)
            && tag.map_or(self.takes_untagged, |tag| self.tags.iter().any(|own| own == tag))
    }
}

/// What a worker asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Functions that it runs.
    pub functions: &'a [String],
    /// Also calls with one of these tags.
    pub tags: &'a [String],
    /// Whether it takes calls without a tag.
    pub untagged: bool,
    /// The pool that it belongs to: it takes the calls of that and no others.
    pub pool: Option<&'a str>,
}

/// Which workers there are.
pub struct Presence {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    node: String,
    workers: Mutex<Roster>,
}

impl Presence {
    /// Nobody yet.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, node: String) -> Self {
        let workers = Mutex::new(Roster::new(clock::duration_ms(REMEMBER)));
        Presence { store, clock, node, workers }
    }

    /// A worker asks for work.
    pub fn asks(&self, scope: &Scope, worker: &str, asked: Asked<'_>) {
        self.workers().asks(self.heard(scope, worker), asked);
    }

    /// Workers of a scope that can be read, by pool and name, as far as a node remembers any: those that fetched for the pool
    /// lately, and those that hold calls of it. `in_flight` counts the calls of that pool.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn by_pool(&self, scope: &Scope) -> Result<BTreeMap<String, Vec<Worker>>, ProviderError> {
        let mut by_pool: BTreeMap<String, Vec<Worker>> = BTreeMap::new();
        let (mut after, mut read) = (None::<String>, 0);
        while read < MAX_LISTED {
            let page = self.read(scope, after.as_deref(), PAGE).await?;
            (after, read) = (page.last().map(|(id, _)| id.clone()), read + page.len());
            let is_last = page.len() < PAGE;
            for stored in page.into_iter().filter_map(|(_, stored)| stored.ok()) {
                for (pool, in_flight) in stored.held_by_pool() {
                    let worker = Worker { in_flight, ..shown(stored.clone()) };
                    by_pool.entry(pool).or_default().push(worker);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(by_pool)
    }

    /// A worker holds a lease of a call, of a pool or not, or holds it for longer.
    pub fn holds(&self, scope: &Scope, worker: &str, pool: Option<&str>, lease: &Lease) {
        self.workers().holds(self.heard(scope, worker), pool, lease.lock_token, lease.expires_at_ms);
    }

    /// A worker has answered, or has lost its lease.
    pub fn ended(&self, scope: &Scope, held: &HeldLease) {
        if let Some(worker) = &held.worker {
            self.workers().ended(self.heard(scope, worker), held.lease.lock_token);
        }
    }

    fn heard<'a>(&self, scope: &'a Scope, worker: &'a str) -> Heard<'a> {
        Heard { prefix: scope.prefix(), worker, now_ms: self.clock.now_ms() }
    }

    fn workers(&self) -> MutexGuard<'_, Roster> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Workers of a scope after a cursor, with the cursor of each. What other nodes know may be 10 seconds old.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(
        &self,
        scope: &Scope,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Listed<Worker>)>, ProviderError> {
        let after_id = after.map(|after| scope.stored(after));
        let workers =
            self.read(scope, after_id.as_deref(), limit).await?.into_iter().filter_map(|(id, stored)| {
                let id = scope.shown(&id)?.to_owned();
                let row = match stored {
                    Ok(stored) => Listed::Readable(shown(stored)),
                    Err(reason) => Listed::Unreadable(Unreadable { id: id.clone(), reason }),
                };
                Some((id, row))
            });
        Ok(workers.collect())
    }

    /// Workers of a scope after an id, as they are stored or will be, with the ids of their records.
    async fn read(
        &self,
        scope: &Scope,
        after_id: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Result<StoredWorker, String>)>, ProviderError> {
        let request = ListRecords { kind: KIND, id_prefix: scope.prefix(), after_id, limit };
        let mut found = BTreeMap::new();
        let ReadableRecords { records, damaged } = self.store.list_records_around_damage(request).await?;
        damaged.into_iter().for_each(damage::note);
        for record in records {
            let read = serde_json::from_slice::<StoredWorker>(&record.body);
            found.insert(record.id, read.map_err(|error| error.to_string()));
        }
        let now_ms = self.clock.now_ms();
        for (worker, known) in self.workers().of(scope.prefix()) {
            let id = self.id(scope.prefix(), worker);
            if after_id.is_none_or(|after| id.as_str() > after) {
                found.insert(id, Ok(self.stored(worker, known, now_ms)));
            }
        }
        Ok(found.into_iter().take(limit).collect())
    }

    /// The worker of a scope that holds a lock; `None` when no node has told of one. What other nodes know may be 10 seconds
    /// old.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn holder(&self, scope: &Scope, lock_token: u64) -> Result<Option<Holder>, ProviderError> {
        let own = self.workers().of(scope.prefix()).find_map(|(worker, known)| {
            let lease = known.leases.get(&lock_token)?;
            Some(Holder { worker: worker.to_owned(), heard_at_ms: lease.heard_at_ms })
        });
        if own.is_some() {
            return Ok(own);
        }
        let found = self.written(scope).await?.into_iter().find_map(|stored| {
            let (_, heard_at_ms) = *stored.leases.iter().find(|(token, _)| *token == lock_token)?;
            Some(Holder { worker: stored.worker, heard_at_ms })
        });
        Ok(found)
    }

    /// How many workers of a scope ask for calls of a function, with the tag if there is one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn announced(
        &self,
        scope: &Scope,
        function: &str,
        tag: Option<&str>,
    ) -> Result<Announced, ProviderError> {
        self.count(scope, |worker| worker.takes(function, tag)).await
    }

    /// How many workers of a scope ask for calls of a pool.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn announced_to_pool(&self, scope: &Scope, pool: &str) -> Result<Announced, ProviderError> {
        self.count(scope, |worker| worker.pools.iter().chain(&worker.pool).any(|own| own == pool)).await
    }

    /// How many workers of a scope are such, each name once.
    async fn count(
        &self,
        scope: &Scope,
        is_such: impl Fn(&StoredWorker) -> bool,
    ) -> Result<Announced, ProviderError> {
        let written = self.written(scope).await?;
        let is_searched_in_part = written.len() == MAX_SEARCHED;
        let now_ms = self.clock.now_ms();
        let mut names: BTreeSet<String> = written
            .into_iter()
            .filter(|stored| stored.node != self.node && is_such(stored))
            .map(|stored| stored.worker)
            .collect();
        let forget_before_ms = now_ms.saturating_sub(clock::duration_ms(REMEMBER));
        let workers = self.workers();
        for (worker, known) in workers.of(scope.prefix()) {
            let is_here = known.seen_at_ms >= forget_before_ms;
            if is_here && is_such(&self.stored(worker, known, now_ms)) {
                names.insert(worker.to_owned());
            }
        }
        let is_bound = is_searched_in_part || workers.is_incomplete(scope.prefix(), now_ms);
        Ok(Announced { workers: names.len(), is_bound })
    }

    /// Workers of a scope as nodes have written them down, up to a bound. One that cannot be read
    /// is left out: it will be written again, and no answer fails because of it.
    async fn written(&self, scope: &Scope) -> Result<Vec<StoredWorker>, ProviderError> {
        let request =
            ListRecords { kind: KIND, id_prefix: scope.prefix(), after_id: None, limit: MAX_SEARCHED };
        let ReadableRecords { records, damaged } = self.store.list_records_around_damage(request).await?;
        damaged.into_iter().for_each(damage::note);
        Ok(records.iter().filter_map(|record| serde_json::from_slice(&record.body).ok()).collect())
    }

    /// Id of the record. Names of workers have no `@`, so two workers never have the same.
    fn id(&self, prefix: &str, worker: &str) -> String {
        format!("{prefix}{worker}@{}", self.node)
    }

    fn stored(&self, worker: &str, known: &Known, now_ms: u64) -> StoredWorker {
        StoredWorker {
            worker: worker.to_owned(),
            functions: known.functions.clone(),
            tags: known.tags.clone(),
            takes_untagged: known.takes_untagged,
            pools: known.pools.keys().cloned().collect(),
            pool: None,
            in_flight: known.leases.values().filter(|lease| lease.ends_at_ms > now_ms).count() as u64,
            in_flight_by_pool: Some(known.in_flight_by_pool(now_ms))
                .filter(|held| !known.pools.is_empty() || !held.is_empty()),
            seen_at_ms: known.seen_at_ms,
            node: self.node.clone(),
            leases: known
                .leases
                .iter()
                .take(MAX_WRITTEN_LEASES)
                .map(|(token, lease)| (*token, lease.heard_at_ms))
                .collect(),
        }
    }

    /// Writes down what has changed and forgets who has gone, until it is time to stop.
    pub async fn keep(self: Arc<Self>, stopping: CancellationToken) {
        while until_stopped(&stopping, clock::sleep(&*self.clock, WRITE_EVERY)).await.is_some() {
            if let Err(error) = self.write_down().await {
                tracing::warn!(%error, "the workers of this node could not be written down; other nodes do not list them");
            }
        }
    }

    async fn write_down(&self) -> Result<(), ProviderError> {
        let mut writes = self.changes().into_iter().peekable();
        while writes.peek().is_some() {
            let batch = RecordBatch { writes: next_batch(&mut writes), ..RecordBatch::default() };
            if let Err(error) = self.store.commit_records(batch).await {
                self.workers().all_mut().for_each(|(_, _, known)| known.is_written = false);
                return Err(error);
            }
        }
        Ok(())
    }

    fn changes(&self) -> Vec<RecordWrite> {
        let now_ms = self.clock.now_ms();
        let mut workers = self.workers();
        workers.forget(now_ms);
        let mut writes = Vec::new();
        for (prefix, worker, known) in workers.all_mut() {
            if std::mem::replace(&mut known.is_written, true) {
                continue;
            }
            let Ok(body) = serde_json::to_vec(&self.stored(worker, known, now_ms)) else { continue };
            writes.push(RecordWrite::Put {
                kind: KIND.to_owned(),
                id: self.id(prefix, worker),
                expect: Expect::Anything,
                due_at_ms: None,
                time_to_live: Some(REMEMBER),
                body: body.into(),
            });
        }
        writes
    }
}

/// The writes of the next commit: as many as it may have, by number and by bytes.
fn next_batch(writes: &mut Peekable<impl Iterator<Item = RecordWrite>>) -> Vec<RecordWrite> {
    let bytes_of = |write: &RecordWrite| match write {
        RecordWrite::Put { body, .. } => body.len(),
        _ => 0,
    };
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(write) = writes.next_if(|write| {
        batch.is_empty() || (batch.len() < MAX_BATCH && bytes + bytes_of(write) <= MAX_BATCH_BYTES)
    }) {
        bytes += bytes_of(&write);
        batch.push(write);
    }
    batch
}

fn shown(stored: StoredWorker) -> Worker {
    Worker {
        pools: stored.held_by_pool().into_keys().collect(),
        worker: stored.worker,
        functions: stored.functions,
        tags: stored.tags,
        in_flight: stored.in_flight,
        last_seen_at: timestamp(stored.seen_at_ms),
        node: stored.node,
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno_testkit::clock::VirtualClock;

    use super::*;

    fn asked<'a>(functions: &'a [String], tags: &'a [String]) -> Asked<'a> {
        Asked { functions, tags, untagged: true, pool: None }
    }

    fn lease(lock_token: u64, ends_at_ms: u64) -> Lease {
        serde_json::from_str(&format!(
            r#"{{"lock_token":{lock_token},"instance":"i","execution_id":1,"activity_id":2,"name":"function","attempt":1,
                "idempotency_key":"k","fetched_at_ms":1,"expires_at_ms":{ends_at_ms}}}"#
        ))
        .unwrap()
    }

    #[tokio::test]
    async fn the_holder_of_a_call_is_known_on_every_node() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let clock = VirtualClock::new();
        let node = |name: &str| Presence::new(store.clone(), clock.clone(), name.to_owned());
        let (one, two) = (node("one"), node("two"));
        let (eu, us) = (Scope::new("shop", "eu").unwrap(), Scope::new("shop", "us").unwrap());
        let heard_at_ms = clock.now_ms();
        one.holds(&eu, "w", None, &lease(7, heard_at_ms + 60_000));
        let held = Some(Holder { worker: "w".to_owned(), heard_at_ms });
        assert_eq!(one.holder(&eu, 7).await.unwrap(), held);
        assert_eq!(two.holder(&eu, 7).await.unwrap(), None, "nothing was written down yet");
        one.write_down().await.unwrap();
        assert_eq!(two.holder(&eu, 7).await.unwrap(), held);
        assert_eq!(two.holder(&us, 7).await.unwrap(), None, "of another tenant");
        assert_eq!(two.holder(&eu, 8).await.unwrap(), None);
    }

    #[tokio::test]
    async fn who_announced_a_function_is_counted_once_and_by_its_tags() {
        let clock = VirtualClock::new();
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let node = |name: &str| Presence::new(store.clone(), clock.clone(), name.to_owned());
        let (one, two) = (node("one"), node("two"));
        let eu = Scope::new("shop", "eu").unwrap();
        let (render, gpu) = (["render".to_owned()], ["gpu".to_owned()]);
        one.asks(&eu, "a", asked(&render, &[]));
        two.asks(&eu, "a", asked(&render, &[]));
        one.asks(&eu, "b", Asked { untagged: false, ..asked(&render, &gpu) });
        one.write_down().await.unwrap();
        let count = async |function: &str, tag: Option<&str>| {
            two.announced(&eu, function, tag).await.unwrap().workers
        };
        assert_eq!(count("render", None).await, 1);
        assert_eq!(count("render", Some("gpu")).await, 1);
        assert_eq!(count("render", Some("cpu")).await, 0);
        assert_eq!(count("charge", None).await, 0);
        one.asks(&eu, "c", Asked { untagged: false, pool: Some("Edge"), ..asked(&render, &[]) });
        one.write_down().await.unwrap();
        assert_eq!(count("render", None).await, 1, "a worker of a pool takes calls of that alone");
        assert_eq!(two.announced_to_pool(&eu, "Edge").await.unwrap().workers, 1);
        assert_eq!(two.announced_to_pool(&eu, "edge").await.unwrap().workers, 0);
        clock.advance(REMEMBER + Duration::from_secs(1));
        assert_eq!(count("render", None).await, 0, "who is silent is forgotten");
    }

    #[tokio::test]
    async fn nodes_hear_of_each_others_workers_and_tenants_do_not() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let clock = VirtualClock::new();
        let node = |name: &str| Presence::new(store.clone(), clock.clone(), name.to_owned());
        let (one, two) = (node("one"), node("two"));
        let (eu, us) = (Scope::new("shop", "eu").unwrap(), Scope::new("shop", "us").unwrap());
        let functions = ["render".to_owned()];
        for worker in ["a", "b", "c"] {
            one.asks(&eu, worker, asked(&functions, &[]));
        }
        let tags = ["gpu".to_owned()];
        two.asks(&eu, "a", Asked { pool: Some("Cloud-01"), ..asked(&functions, &tags) });
        assert_eq!(two.list(&eu, None, 10).await.unwrap().len(), 1);
        one.write_down().await.unwrap();
        assert!(one.changes().is_empty(), "what has not changed is not written again");
        let rows = |listed: Vec<(String, Listed<Worker>)>| -> Vec<String> {
            let rows = listed.into_iter().map(|(_, row)| row.readable().unwrap());
            rows.map(|row| format!("{} {}", row.worker, row.node)).collect()
        };
        let first = two.list(&eu, None, 2).await.unwrap();
        let rest = two.list(&eu, Some(&first[1].0), 10).await.unwrap();
        assert_eq!(rows(first), ["a one", "a two"]);
        assert_eq!(rows(rest), ["b one", "c one"]);
        assert!(two.list(&us, None, 10).await.unwrap().is_empty());
        let pools: Vec<String> = two.by_pool(&eu).await.unwrap().into_keys().collect();
        assert_eq!(pools, ["Cloud-01"]);
        assert!(two.by_pool(&us).await.unwrap().is_empty());
    }

    #[test]
    fn what_earlier_versions_wrote_down_can_be_read() {
        let text = r#"{"worker":"w","functions":[],"tags":[],"takes_untagged":false,"pool":"Cloud","in_flight":2,
            "in_flight_by_pool":{"Edge":2},"seen_at_ms":5,"node":"one"}"#;
        let stored: StoredWorker = serde_json::from_str(text).unwrap();
        assert_eq!(shown(stored).pools, ["Cloud", "Edge"]);
    }

    #[test]
    fn what_is_written_down_goes_into_commits_of_bounded_size() {
        let write = |bytes: usize| RecordWrite::Put {
            kind: KIND.to_owned(),
            id: "w".to_owned(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: vec![0; bytes].into(),
        };
        let sizes = |writes: Vec<RecordWrite>| {
            let mut writes = writes.into_iter().peekable();
            let mut sizes = Vec::new();
            while writes.peek().is_some() {
                sizes.push(next_batch(&mut writes).len());
            }
            sizes
        };
        let large = MAX_BATCH_BYTES / 2;
        assert_eq!(sizes(vec![write(large); 5]), [2, 2, 1]);
        assert_eq!(sizes(vec![write(MAX_BATCH_BYTES + 1); 2]), [1, 1]);
        assert_eq!(sizes(vec![write(1); MAX_BATCH + 1]), [MAX_BATCH, 1]);
        assert!(sizes(Vec::new()).is_empty());
    }

    #[tokio::test]
    async fn leases_that_have_ended_are_not_in_flight_and_who_is_silent_is_forgotten() {
        let clock = VirtualClock::new();
        let presence = Presence::new(MemoryStore::new(), clock.clone(), "one".to_owned());
        let scope = Scope::new("shop", "eu").unwrap();
        let ends_at_ms = clock.now_ms() + 1_000;
        let lease = lease(7, ends_at_ms);
        presence.asks(&scope, "w", asked(&["render".to_owned()], &[]));
        presence.holds(&scope, "w", None, &lease);
        let in_flight =
            |mut listed: Vec<(String, Listed<Worker>)>| listed.remove(0).1.readable().unwrap().in_flight;
        assert_eq!(in_flight(presence.list(&scope, None, 10).await.unwrap()), 1);
        clock.advance(Duration::from_secs(2));
        assert_eq!(in_flight(presence.list(&scope, None, 10).await.unwrap()), 0);
        clock.advance(REMEMBER);
        presence.changes();
        assert!(presence.list(&scope, None, 10).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn calls_are_counted_in_their_pool_and_not_in_the_one_that_was_asked_for_last() {
        let store: Arc<dyn Store> = MemoryStore::new();
        let clock = VirtualClock::new();
        let node = |name: &str| Presence::new(store.clone(), clock.clone(), name.to_owned());
        let (one, two, scope) = (node("one"), node("two"), Scope::default());
        let ends_at_ms = clock.now_ms() + 60_000;
        for (pool, token) in [("Cloud", 1), ("Cloud", 2), ("Edge", 3)] {
            one.asks(&scope, "w", Asked { pool: Some(pool), ..asked(&[], &[]) });
            one.holds(&scope, "w", Some(pool), &lease(token, ends_at_ms));
        }
        one.asks(&scope, "w", Asked { pool: Some("Idle"), ..asked(&[], &[]) });
        one.write_down().await.unwrap();
        for node in [one, two] {
            let pools = node.by_pool(&scope).await.unwrap();
            let counts: Vec<_> = pools
                .iter()
                .map(|(pool, workers)| (pool.as_str(), workers.len(), workers[0].in_flight))
                .collect();
            assert_eq!(counts, [("Cloud", 1, 2), ("Edge", 1, 1), ("Idle", 1, 0)]);
            let listed = node.list(&scope, None, 10).await.unwrap().remove(0).1.readable().unwrap();
            assert_eq!(
                (listed.pools, listed.in_flight),
                (vec!["Cloud".into(), "Edge".into(), "Idle".into()], 3)
            );
            for pool in ["Cloud", "Edge", "Idle"] {
                assert_eq!(node.announced_to_pool(&scope, pool).await.unwrap().workers, 1, "{pool}");
            }
        }
    }
}
