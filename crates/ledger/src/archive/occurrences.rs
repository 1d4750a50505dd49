//! `recurring_history`: what became of occurrences of recurring actions, from their records and
//! back.

use std::sync::Arc;

use async_trait::async_trait;
use segno::store::{ErrorKind, ProviderError, Record, Store};
use segno_actions::functions::Scope;
use segno_actions::moment::due_ms;
use segno_actions::recurring::{Decision, HistoryEntry, RECURRING_HISTORY_KIND};

use super::instances::time;
use super::kind::RECURRING_HISTORY;
use super::limits::UNREADABLE_PAUSE;
use super::retire::{Moving, Retired, Retiring, removed};
use super::row::{ArchivedRow as _, archived_row};
use super::write::scope_of;

archived_row! {
    /// What became of an occurrence, or of a stretch of them. `id` is that of the recurring action,
    /// `incarnation` the scheduled time.
    OccurrenceRow {
        /// The scheduled time; of a stretch, the first.
        time: i64,
        /// When it was decided.
        decided_at: i64,
        /// `fired`, `skipped`, `buffered`, `refused` or `disabled`.
        decision: Arc<str>,
        /// Why it was skipped.
        reason: Option<Arc<str>>,
        /// `completed`, `failed` or `cancelled`.
        outcome: Option<Arc<str>>,
        /// The instance of its call, as in the tenant.
        instance: Option<Arc<str>>,
        /// All of it, a JSON object.
        data: Arc<str>,
    }
}

impl OccurrenceRow {
    /// The row of an entry of the history of a recurring action.
    ///
    /// # Errors
    /// When it has no JSON form.
    pub(super) fn of(
        scope: &Scope,
        id: &str,
        (entry, version): (&HistoryEntry, u64),
    ) -> Result<Self, serde_json::Error> {
        let prefix = scope.id_prefix();
        let shown = |id: &String| Arc::from(id.strip_prefix(&prefix).unwrap_or(id));
        let name = |value: serde_json::Value| value.as_str().map(Arc::<str>::from);
        let ended_at = entry.ended_at.unwrap_or(entry.decided_at);
        Ok(OccurrenceRow {
            tenant_id: scope.tenant.as_str().into(),
            workspace_id: scope.namespace.as_str().into(),
            id: id.into(),
            incarnation: time(due_ms(entry.time)),
            revision: time(version),
            ended_at: time(due_ms(ended_at)),
            time: time(due_ms(entry.time)),
            decided_at: time(due_ms(entry.decided_at)),
            decision: name(serde_json::to_value(entry.decision)?).unwrap_or_default(),
            reason: name(serde_json::to_value(entry.reason)?),
            outcome: name(serde_json::to_value(entry.outcome)?),
            instance: entry.instance.as_ref().map(shown),
            data: serde_json::to_string(entry)?.into(),
        })
    }

    /// The entry.
    ///
    /// # Errors
    /// When its JSON cannot be read.
    pub fn entry(&self) -> Result<HistoryEntry, serde_json::Error> {
        serde_json::from_str(&self.data)
    }
}

/// Entries of histories whose time is over.
pub struct RetiredOccurrences;

#[async_trait]
impl Retiring for RetiredOccurrences {
    fn due_kind(&self) -> &'static str {
        RECURRING_HISTORY_KIND
    }

    async fn retire(&self, store: &dyn Store, due: &Record) -> Result<Retired, ProviderError> {
        let place = scope_of(&due.id).and_then(|(scope, rest)| Some((scope, rest.rsplit_once('/')?.0)));
        let Some((scope, id)) = place else { return Ok(Retired::Stays("its id has no scope".to_owned())) };
        let entry = match HistoryEntry::read(due) {
            Ok(entry) => entry,
            Err(error) => return Ok(Retired::Stays(error.to_string())),
        };
        if runs(store, &entry).await? {
            let pause_ms = segno::clock::duration_ms(UNREADABLE_PAUSE);
            return Ok(Retired::DueAt(store.now_ms().await?.saturating_add(pause_ms)));
        }
        Ok(match OccurrenceRow::of(&scope, id, (&entry, due.version)) {
            Ok(row) => {
                let rows = vec![(&RECURRING_HISTORY, row.to_cells())];
                Retired::Moves(Moving { scope, rows, removal: vec![removed(due)] })
            }
            Err(error) => Retired::Stays(error.to_string()),
        })
    }
}

/// Whether the end of its call is still to be written into an entry.
async fn runs(store: &dyn Store, entry: &HistoryEntry) -> Result<bool, ProviderError> {
    let Some(instance) = entry.instance.as_deref().filter(|_| entry.outcome.is_none()) else {
        return Ok(false);
    };
    if !matches!(entry.decision, Decision::Fired | Decision::Buffered) {
        return Ok(false);
    }
    match store.get_instance_info(instance).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        info => Ok(info?.completed_at_ms.is_none()),
    }
}
