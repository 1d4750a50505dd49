//! A store with faults, for tests: seeded, and everything that real stores do to their callers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, once};
use futures_util::{FutureExt, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// How often each fault strikes, of 100 calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// A write is done and reported as timed out.
    pub(crate) time_out_after_success: u8,
    /// A call fails and does nothing.
    pub(crate) unavailable: u8,
    /// A conflict is reported though there is none.
    pub(crate) false_conflict: u8,
    /// A listing lacks what was written last.
    pub(crate) delayed_list: u8,
    /// A get ends early.
    pub(crate) truncated_get: u8,
    /// A put is reported as timed out, and is done before the next write.
    pub(crate) late_put: u8,
    /// Puts if absent replace what is there: a store that the ledger refuses.
    pub(crate) ignores_conditions: bool,
}

impl Faults {
    /// None of them.
    pub(crate) const NONE: Faults = Faults {
        time_out_after_success: 0,
        unavailable: 0,
        false_conflict: 0,
        delayed_list: 0,
        truncated_get: 0,
        late_put: 0,
        ignores_conditions: false,
    };
    /// All of them.
    pub(crate) const ALL: Faults = Faults {
        time_out_after_success: 8,
        unavailable: 8,
        false_conflict: 4,
        delayed_list: 10,
        truncated_get: 5,
        late_put: 4,
        ignores_conditions: false,
    };
}

/// What calls were made, and what strikes next.
#[derive(Debug, Default)]
struct State {
    random: fastrand::Rng,
    /// Writes until every further call fails, as after a crash of the process.
    writes_left: Option<u64>,
    writes: u64,
    bytes_written: BTreeMap<String, u64>,
    reads: u64,
    /// Puts that were reported as timed out and are still to be done.
    late: Vec<(Path, PutPayload, PutOptions)>,
}

/// A store behind faults. Several of them may share the objects; each has faults and
/// counters of its own.
#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Arc<dyn ObjectStore>,
    faults: Faults,
    state: Mutex<State>,
}

impl std::fmt::Display for Faulty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a store with faults")
    }
}

fn failed(problem: &'static str) -> Error {
    Error::Generic { store: "faulty", source: problem.into() }
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, faults: Faults, seed: u64) -> Arc<Self> {
        let random = fastrand::Rng::with_seed(seed);
        Arc::new(Faulty { inner, faults, state: Mutex::new(State { random, ..State::default() }) })
    }

    /// After this many further writes every call fails.
    pub(crate) fn crash_after(&self, writes: u64) {
        self.state.lock().unwrap().writes_left = Some(writes);
    }

    /// Writes and deletions so far.
    pub(crate) fn writes(&self) -> u64 {
        self.state.lock().unwrap().writes
    }

    /// Gets and listings so far.
    pub(crate) fn reads(&self) -> u64 {
        self.state.lock().unwrap().reads
    }

    /// Bytes written to paths for which this holds.
    pub(crate) fn bytes_written(&self, counts: impl Fn(&str) -> bool) -> u64 {
        let state = self.state.lock().unwrap();
        state.bytes_written.iter().filter(|(path, _)| counts(path)).map(|(_, bytes)| bytes).sum()
    }

    fn strikes(&self, percent: u8) -> bool {
        percent > 0 && self.state.lock().unwrap().random.u8(0..100) < percent
    }

    /// Whether a read fails.
    fn read_fails(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.reads += 1;
        let is_crashed = state.writes_left == Some(0);
        drop(state);
        is_crashed || self.strikes(self.faults.unavailable)
    }

    /// Counts a write before it is done; refuses it after the crash.
    fn note_write(&self, path: &Path, bytes: usize) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        match &mut state.writes_left {
            Some(0) => return Err(failed("the process crashed")),
            Some(left) => *left -= 1,
            None => (),
        }
        state.writes += 1;
        *state.bytes_written.entry(path.to_string()).or_default() += bytes as u64;
        Ok(())
    }

    /// Does the puts that were reported as timed out.
    async fn catch_up(&self) {
        let late = std::mem::take(&mut self.state.lock().unwrap().late);
        for (path, payload, options) in late {
            // Whether it fails is known to no caller.
            let _ = self.inner.put_opts(&path, payload, options).await;
        }
    }
}

/// A listing that lacks what any writer wrote last.
fn without_newest(mut listed: Vec<Result<ObjectMeta>>) -> Vec<Result<ObjectMeta>> {
    let written_at = |meta: &Result<ObjectMeta>| meta.as_ref().ok().map(|meta| meta.last_modified);
    let newest = listed.iter().map(written_at).max();
    if let Some(at) = listed.iter().rposition(|meta| Some(written_at(meta)) == newest) {
        drop(listed.remove(at));
    }
    listed
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        self.catch_up().await;
        if self.faults.ignores_conditions {
            options.mode = PutMode::Overwrite;
        }
        if self.strikes(self.faults.unavailable) {
            return Err(failed("503"));
        }
        if matches!(options.mode, PutMode::Create) && self.strikes(self.faults.false_conflict) {
            return Err(Error::Precondition { path: location.to_string(), source: "412".into() });
        }
        self.note_write(location, payload.content_length())?;
        if self.strikes(self.faults.late_put) {
            self.state.lock().unwrap().late.push((location.clone(), payload, options));
            return Err(failed("timed out"));
        }
        let result = self.inner.put_opts(location, payload, options).await;
        if result.is_ok() && self.strikes(self.faults.time_out_after_success) {
            return Err(failed("timed out"));
        }
        result
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.read_fails() {
            return Err(failed("503"));
        }
        let mut result = self.inner.get_opts(location, options.clone()).await?;
        if self.strikes(self.faults.truncated_get) {
            let whole = self.inner.get_opts(location, options).await?.bytes().await?;
            let half = whole.slice(..whole.len() / 2);
            result.payload = GetResultPayload::Stream(once(async { Ok(half) }).boxed());
        }
        Ok(result)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if self.strikes(self.faults.unavailable) {
            return once(async { Err(failed("503")) }).boxed();
        }
        if let Err(error) = self.note_write(&Path::from("deleted"), 0) {
            return once(async { Err(error) }).boxed();
        }
        let deleted = self.inner.delete_stream(locations);
        match self.strikes(self.faults.time_out_after_success) {
            true => deleted.map(|_| Err(failed("timed out"))).boxed(),
            false => deleted,
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.read_fails() {
            return once(async { Err(failed("503")) }).boxed();
        }
        let listed = self.inner.list(prefix);
        match self.strikes(self.faults.delayed_list) {
            true => listed
                .collect::<Vec<_>>()
                .map(|listed| stream::iter(without_newest(listed)))
                .flatten_stream()
                .boxed(),
            false => listed,
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        if self.read_fails() {
            return Err(failed("503"));
        }
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
