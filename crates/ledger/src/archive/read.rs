//! Reading: instances and histories by id, and files by parts for queries.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt, stream};
use segno::client::Instance;
use segno::event::Event;
use segno::store::ErrorKind;
use segno_actions::action::Action;
use segno_actions::functions::Scope;

use super::actions::ActionRow;
use super::events::EventRow;
use super::file::ArchivedFile;
use super::instances::{InstanceRow, unsigned};
use super::kind::{ACTIONS, EVENTS, ID, INCARNATION, INSTANCES, Kind, integer, text};
use super::limits::{CONCURRENT_FILES, READ_TRIES};
use super::row::ArchivedRow;
use super::store::{ArchiveFault, ArchiveStore, ListedKind};
use super::write::Rows;
use crate::objects::StorageError;
use crate::snapshot::TableFile;

/// Which events to read.
#[derive(Debug, Clone)]
pub struct EventsQuery<'a> {
    /// The id of the instance in its scope.
    pub id: &'a str,
    /// When the instance was created, in Unix milliseconds.
    pub created_at_ms: u64,
    /// The execution.
    pub execution: u64,
    /// Only events after this one; 0 begins with the first.
    pub after: u64,
    /// At most this many.
    pub limit: usize,
}

/// An execution of which events are archived.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedExecution {
    /// Its number, from 1.
    pub execution: u64,
    /// Its last event.
    pub last: Event,
    /// When its first event was recorded, in Unix milliseconds.
    pub started_at_ms: u64,
    /// How many events it has.
    pub events: u64,
}

impl ArchiveStore {
    /// The instance with an id that was created last, with the ids of its scope.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub async fn instance(&self, scope: &Scope, id: &str) -> Result<Option<Instance>, ArchiveFault> {
        let Some(row) = self.instance_row(scope, id).await? else { return Ok(None) };
        let unreadable = |error: serde_json::Error| StorageError::corrupt(INSTANCES.name, error);
        Ok(Some(row.instance().map_err(unreadable)?))
    }

    async fn instance_row(&self, scope: &Scope, id: &str) -> Result<Option<InstanceRow>, ArchiveFault> {
        let rows = decoded::<InstanceRow>(self.find(scope, &INSTANCES, id, |_| true).await?)?;
        Ok(rows.into_iter().max_by_key(|row| (row.incarnation, row.revision)))
    }

    /// The action with an id that was made last.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub async fn action(&self, scope: &Scope, id: &str) -> Result<Option<Action>, ArchiveFault> {
        let Some(row) = self.latest::<ActionRow>(scope, &ACTIONS, id).await?.pop() else { return Ok(None) };
        let unreadable = |error: serde_json::Error| StorageError::corrupt(ACTIONS.name, error);
        Ok(Some(row.action().map_err(unreadable)?))
    }

    /// The rows of what has an id and was made last, in the order of their keys, each as it was last.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub async fn latest<R: ArchivedRow>(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        id: &str,
    ) -> Result<Vec<R>, ArchiveFault> {
        let mut rows = self.find(scope, kind, id, |_| true).await?;
        let last = rows.iter().map(|row| integer(row, INCARNATION)).max();
        rows.retain(|row| Some(integer(row, INCARNATION)) == last);
        kind.sort(&mut rows);
        kind.deduplicate(&mut rows);
        decoded(rows)
    }

    /// Events of one execution, ascending, and whether there are more.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub async fn events(
        &self,
        scope: &Scope,
        query: EventsQuery<'_>,
    ) -> Result<(Vec<Event>, bool), ArchiveFault> {
        let mut found = BTreeMap::new();
        for row in self.event_rows(scope, query.id, query.created_at_ms).await? {
            if unsigned(row.execution) == query.execution && unsigned(row.event_id) > query.after {
                found.insert(row.event_id, row);
            }
        }
        let is_more = found.len() > query.limit;
        let events =
            found.into_values().take(query.limit).map(|row| event(&row)).collect::<Result<_, _>>()?;
        Ok((events, is_more))
    }

    /// The executions of an instance, ascending.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    pub async fn executions(
        &self,
        scope: &Scope,
        id: &str,
        created_at_ms: u64,
    ) -> Result<Vec<ArchivedExecution>, ArchiveFault> {
        let mut found: BTreeMap<i64, BTreeMap<i64, EventRow>> = BTreeMap::new();
        for row in self.event_rows(scope, id, created_at_ms).await? {
            found.entry(row.execution).or_default().insert(row.event_id, row);
        }
        let execution = |(number, events): (i64, BTreeMap<i64, EventRow>)| {
            let ends = events.first_key_value().zip(events.last_key_value());
            let ((_, first), (_, last)) = ends?;
            let execution = event(last).map(|last| ArchivedExecution {
                execution: unsigned(number),
                last,
                started_at_ms: unsigned(first.at),
                events: events.len() as u64,
            });
            Some(execution)
        };
        found.into_iter().filter_map(execution).collect()
    }

    async fn event_rows(
        &self,
        scope: &Scope,
        id: &str,
        created_at_ms: u64,
    ) -> Result<Vec<EventRow>, ArchiveFault> {
        let incarnation = super::instances::time(created_at_ms);
        let has_it = |file: &ArchivedFile| (file.name.from_ms..=file.name.to_ms).contains(&incarnation);
        let mut rows = decoded::<EventRow>(self.find(scope, &EVENTS, id, has_it).await?)?;
        rows.retain(|row| row.incarnation == incarnation);
        Ok(rows)
    }

    /// Some columns of the rows of a file that have these texts, in the order of the file; `None` when it was merged or erased
    /// meanwhile. Row groups that cannot have them are not read.
    ///
    /// # Errors
    /// `Invalid` for a column that the kind does not have, `Unavailable`, `Corrupt`.
    pub async fn rows(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
        columns: &[&str],
        wanted: &[(&str, &str)],
    ) -> Result<Option<Rows>, ArchiveFault> {
        let place = |name: &str| {
            let place = kind.columns.iter().position(|column| column.name == name);
            let unknown =
                || StorageError::new(ErrorKind::Invalid, kind.name, format!("it has no column {name}"));
            place.ok_or_else(unknown)
        };
        let wanted: Vec<(usize, &str)> = wanted
            .iter()
            .map(|(name, text)| Ok((place(name)?, *text)))
            .collect::<Result<_, StorageError>>()?;
        let columns: Vec<usize> = columns.iter().map(|name| place(name)).collect::<Result<_, _>>()?;
        let Some(table) = self.open(kind, file).await? else { return Ok(None) };
        let mut rows = Rows::new();
        for group in 0..table.groups() {
            if !table.may_have(group, &wanted) {
                continue;
            }
            // The columns of the conditions come behind those that are delivered.
            let read = columns.iter().copied().chain(wanted.iter().map(|(at, _)| *at)).collect();
            let found = match table.some_columns(group, read).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                found => found?,
            };
            let count = columns.len();
            let is_wanted = |row: &Vec<crate::tables::Cell>| {
                wanted.iter().enumerate().all(|(at, (_, wanted))| text(row, count + at) == *wanted)
            };
            rows.extend(found.into_iter().filter(is_wanted).map(|mut row| {
                row.truncate(count);
                row
            }));
        }
        Ok(Some(rows))
    }

    /// All rows of a file; `None` when it is gone.
    pub(super) async fn all_rows(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
    ) -> Result<Option<Rows>, ArchiveFault> {
        let columns: Vec<&str> = kind.columns.iter().map(|column| column.name).collect();
        self.rows(kind, file, &columns, &[]).await
    }

    /// The rows of an id.
    async fn rows_of(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
        id: &str,
    ) -> Result<Option<Rows>, ArchiveFault> {
        let columns: Vec<&str> = kind.columns.iter().map(|column| column.name).collect();
        self.rows(kind, file, &columns, &[("id", id)]).await
    }

    /// Whether a file may have rows of an id.
    pub(super) async fn may_have(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
        id: &str,
    ) -> Result<bool, ArchiveFault> {
        let Some(table) = self.open(kind, file).await? else { return Ok(false) };
        Ok((0..table.groups()).any(|group| table.may_have(group, &[(ID, id)])))
    }

    async fn open(
        &self,
        kind: &'static Kind,
        file: &ArchivedFile,
    ) -> Result<Option<TableFile>, ArchiveFault> {
        let name = file.name.clone();
        let is_intact = move |bytes: &bytes::Bytes| name.fits(bytes);
        let layout = kind.layout();
        let opened =
            TableFile::open_checked(&self.inner.objects, file.path.clone(), file.bytes, &layout, is_intact);
        match opened.await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    /// The rows of an id in the files of a kind. When one of them is gone, a merge has put its rows elsewhere, and all is read
    /// again.
    async fn find(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        id: &str,
        has_it: impl Fn(&ArchivedFile) -> bool,
    ) -> Result<Rows, ArchiveFault> {
        for _ in 0..READ_TRIES {
            let ListedKind { mut files, indexes } = self.listed(scope, kind).await?;
            files.retain(&has_it);
            let files = self.files_with(files, &indexes, id).await?;
            // Collected first: a stream of borrowing closures is not known to be `Send`.
            let reads: Vec<_> = files.iter().map(|file| self.rows_of(kind, file, id)).collect();
            let found: Vec<Option<Rows>> =
                stream::iter(reads).buffered(CONCURRENT_FILES).try_collect().await?;
            if let Some(found) = found.into_iter().collect::<Option<Vec<Rows>>>() {
                return Ok(found.into_iter().flatten().collect());
            }
        }
        let problem = format!("its files changed {READ_TRIES} times while they were read; try again");
        Err(StorageError::new(ErrorKind::Unavailable, kind.name, problem).into())
    }
}

/// The rows of a kind.
fn decoded<R: ArchivedRow>(rows: Rows) -> Result<Vec<R>, ArchiveFault> {
    let row = |cells| R::from_cells(cells).map_err(|error| StorageError::corrupt("archive", error).into());
    rows.into_iter().map(row).collect()
}

fn event(row: &EventRow) -> Result<Event, ArchiveFault> {
    row.event().map_err(|error| StorageError::corrupt(EVENTS.name, error).into())
}
