//! Reads of single records, joined: while one statement is under way the next one fills.
//!
//! A statement costs the server several times what finding one row costs, for it is read and planned anew each time. Many
//! calls ask for a record or two each, so a burst of calls is a burst of such reads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use segno::store::{ProviderError, Record};
use tokio::sync::{Notify, oneshot};
use tokio_postgres::types::Type;

use crate::answer::get;
use crate::core::{Core, closed};
use crate::number::unsigned;
use crate::records::{COLUMNS, record};

/// The method of the store that is answered here.
const OPERATION: &str = "get_record";

/// Most records that one statement reads.
const MAX_LOOKUPS: usize = 512;

/// A record that somebody waits for.
struct Lookup {
    kind: String,
    id: String,
    answer: oneshot::Sender<Result<Option<Record>, ProviderError>>,
}

impl Lookup {
    /// The database refuses a statement with such a text, and so it must not share one.
    fn goes_alone(&self) -> bool {
        self.kind.contains('\0') || self.id.contains('\0')
    }
}

/// Records that somebody waits for.
#[derive(Default)]
pub(crate) struct Lookups {
    waiting: Mutex<Waiting>,
    wake: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Bounded by the calls under way.
    lookups: VecDeque<Lookup>,
    is_closed: bool,
}

impl Lookups {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As many as go together, in order. Whoever waits no longer is left out.
    fn take(&self) -> Vec<Lookup> {
        let lookups = &mut self.waiting().lookups;
        lookups.retain(|lookup| !lookup.answer.is_closed());
        let alone = lookups.iter().take(MAX_LOOKUPS).position(Lookup::goes_alone);
        let count = alone.map_or(MAX_LOOKUPS, |place| place.max(1)).min(lookups.len());
        lookups.drain(..count).collect()
    }

    /// Nobody is answered any more.
    pub(crate) fn close(&self) {
        *self.waiting() = Waiting { lookups: VecDeque::new(), is_closed: true };
    }
}

impl Core {
    /// A record, read together with whatever else is asked for at the time.
    pub(crate) async fn look_up(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        let (answer, answered) = oneshot::channel();
        {
            let mut waiting = self.lookups.waiting();
            if waiting.is_closed {
                return Err(closed(OPERATION));
            }
            waiting.lookups.push_back(Lookup { kind: kind.to_owned(), id: id.to_owned(), answer });
        }
        self.lookups.wake.notify_one();
        answered.await.unwrap_or_else(|_| Err(closed(OPERATION)))
    }

    /// The records of lookups, each at its place.
    async fn find(&self, lookups: &[Lookup]) -> Result<Vec<Option<Record>>, ProviderError> {
        let schema = self.schema();
        // By index for each, whatever the planner thinks of the table.
        let sql = format!(
            "SELECT {COLUMNS}, x.place
               FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(kind, id, place)
              CROSS JOIN LATERAL (SELECT * FROM {schema}.record o WHERE o.kind = x.kind AND o.id = x.id OFFSET 0) r
              WHERE r.expires_at_ms IS NULL OR r.expires_at_ms > {schema}.now_ms()"
        );
        let kinds: Vec<&str> = lookups.iter().map(|lookup| lookup.kind.as_str()).collect();
        let ids: Vec<&str> = lookups.iter().map(|lookup| lookup.id.as_str()).collect();
        let parameters = [(&kinds as _, Type::TEXT_ARRAY), (&ids as _, Type::TEXT_ARRAY)];
        let mut found: Vec<Option<Record>> = lookups.iter().map(|_| None).collect();
        for row in &self.rows(OPERATION, &sql, &parameters).await? {
            let place = usize::try_from(unsigned(get(row, 6)?)).unwrap_or(usize::MAX);
            if let Some(found) = place.checked_sub(1).and_then(|place| found.get_mut(place)) {
                *found = Some(record(row)?);
            }
        }
        Ok(found)
    }
}

/// Answers lookups until it is stopped.
pub(crate) async fn run(core: Arc<Core>) {
    loop {
        let lookups = core.lookups.take();
        if lookups.is_empty() {
            core.lookups.wake.notified().await;
            continue;
        }
        match core.find(&lookups).await {
            Ok(found) => {
                for (lookup, found) in lookups.into_iter().zip(found) {
                    let _gone = lookup.answer.send(Ok(found));
                }
            }
            Err(error) => {
                for lookup in lookups {
                    let _gone = lookup.answer.send(Err(error.clone()));
                }
            }
        }
    }
}
