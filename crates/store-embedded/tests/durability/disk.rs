//! A directory in memory that records what is done to it.
//!
//! The model of a power cut: what was synced is there. Of what was not, any 512-byte sector of any write may be
//! there or not, in any combination; a new length may be there or not. Creations, renames and removals are
//! journaled: those since the last sync of the directory are there up to some point.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use segno_embedded::{Files, StoreFile};
use segno_testkit::seeded::Random;

use crate::gate::{Gate, Shut};

const SECTOR: usize = 512;

type Inode = u64;

/// One thing that was done.
#[derive(Debug, Clone)]
enum Done {
    Write { inode: Inode, offset: u64, bytes: Vec<u8> },
    SetLen { inode: Inode, len: u64 },
    Sync { inode: Inode },
    Name(Naming),
    SyncDir,
}

/// A change of the directory.
#[derive(Debug, Clone)]
enum Naming {
    Create { name: String, inode: Inode },
    Rename { from: String, to: String },
    Remove { name: String },
}

/// A failure that is to happen.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// At which operation that changes something, from 0.
    pub at: usize,
    pub error: io::ErrorKind,
    /// Whether only that operation fails, or all after it as well.
    pub lasts: bool,
    /// Whether a write that fails writes half of its bytes.
    pub short: bool,
    /// What the names of files start with that fail; all with an empty one.
    pub on: &'static str,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    names: BTreeMap<String, Inode>,
    inodes: HashMap<Inode, Vec<u8>>,
}

#[derive(Debug, Default)]
struct State {
    start: Contents,
    now: Contents,
    done: Vec<Done>,
    next_inode: Inode,
    fault: Option<Fault>,
}

#[derive(Debug, Default)]
pub struct Disk {
    state: Mutex<State>,
    syncs: Arc<Gate>,
}

#[derive(Debug)]
struct File {
    disk: Arc<Disk>,
    inode: Inode,
}

/// The directory as files see it.
#[derive(Debug)]
pub struct Mounted(Arc<Disk>);

/// Whether an error is that of a disk, or of a quota, that is full.
fn is_full(error: io::ErrorKind) -> bool {
    matches!(error, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl Contents {
    fn name(&mut self, naming: &Naming) {
        match naming {
            Naming::Create { name, inode } => {
                self.names.insert(name.clone(), *inode);
            }
            Naming::Rename { from, to } => {
                if let Some(inode) = self.names.remove(from) {
                    self.names.insert(to.clone(), inode);
                }
            }
            Naming::Remove { name } => {
                self.names.remove(name);
            }
        }
    }

    fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        let file = self.inodes.entry(inode).or_default();
        if file.len() < offset + bytes.len() {
            file.resize(offset + bytes.len(), 0);
        }
        file[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    fn apply(&mut self, done: &Done) {
        match done {
            Done::Write { inode, offset, bytes } => self.write(*inode, *offset as usize, bytes),
            Done::SetLen { inode, len } => self.inodes.entry(*inode).or_default().resize(*len as usize, 0),
            Done::Name(naming) => self.name(naming),
            Done::Sync { .. } | Done::SyncDir => {}
        }
    }

    /// Applies some of what was not synced.
    fn apply_some(&mut self, unsynced: &[Done], random: &mut Random) {
        let luck = random.below(3);
        for done in unsynced {
            match done {
                Done::Write { inode, offset, bytes } => {
                    let mut at = 0;
                    while at < bytes.len() {
                        let offset = *offset as usize + at;
                        let len = (SECTOR - offset % SECTOR).min(bytes.len() - at);
                        if random.below(2) < luck {
                            self.write(*inode, offset, &bytes[at..at + len]);
                        }
                        at += len;
                    }
                }
                other if random.below(2) < luck => self.apply(other),
                _ => {}
            }
        }
    }

    /// Whether something is done to a file whose name starts with this.
    fn is_on(&self, done: &Done, prefix: &str) -> bool {
        let (Done::Write { inode, .. } | Done::SetLen { inode, .. } | Done::Sync { inode }) = done else {
            return prefix.is_empty();
        };
        self.names.iter().any(|(name, named)| named == inode && name.starts_with(prefix)) || prefix.is_empty()
    }

    /// Removes all files whose names start with this.
    pub fn remove(&mut self, prefix: &str) {
        self.names.retain(|name, _| !name.starts_with(prefix));
    }

    /// Takes over all files of another directory whose names start with this.
    pub fn copy_from(&mut self, other: &Contents, prefix: &str) {
        for (name, inode) in other.names.iter().filter(|(name, _)| name.starts_with(prefix)) {
            let own = self.inodes.keys().max().map_or(1, |last| last + 1);
            self.inodes.insert(own, other.inodes.get(inode).cloned().unwrap_or_default());
            self.names.insert(name.clone(), own);
        }
    }

    /// Cuts a file.
    pub fn truncate(&mut self, name: &str, len: usize) {
        let inode = self.names[name];
        self.inodes.entry(inode).or_default().truncate(len);
    }

    /// Flips a bit of a file; `false` when there is none at this place.
    pub fn flip(&mut self, name: &str, bit: usize) -> bool {
        let Some(byte) = self.names.get(name).and_then(|inode| self.inodes.get_mut(inode)?.get_mut(bit / 8))
        else {
            return false;
        };
        *byte ^= 1 << (bit % 8);
        true
    }

    /// Overwrites a part of a file, as another program or a failing disk may.
    pub fn overwrite(&mut self, name: &str, part: std::ops::Range<usize>) {
        let file = self.names.get(name).and_then(|inode| self.inodes.get_mut(inode)).unwrap();
        let end = part.end.min(file.len());
        file[part.start..end].fill(0xa5);
    }

    pub fn files(&self) -> impl Iterator<Item = (&String, usize)> {
        self.names.iter().map(|(name, inode)| (name, self.inodes.get(inode).map_or(0, Vec::len)))
    }
}

impl Disk {
    pub fn empty() -> Arc<Disk> {
        Self::with(Contents::default())
    }

    pub fn with(contents: Contents) -> Arc<Disk> {
        let next_inode = contents.inodes.keys().max().map_or(1, |last| last + 1);
        let state = State { start: contents.clone(), now: contents, next_inode, ..State::default() };
        Arc::new(Disk { state: Mutex::new(state), syncs: Arc::default() })
    }

    pub fn mount(self: &Arc<Self>) -> Arc<dyn Files> {
        Arc::new(Mounted(Arc::clone(self)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// How many things have been done so far.
    pub fn done(&self) -> usize {
        self.lock().done.len()
    }

    pub fn fail(&self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// From now on, syncs of files wait.
    pub fn hold_syncs(&self) -> Shut {
        self.syncs.shut()
    }

    pub fn contents(&self) -> Contents {
        self.lock().now.clone()
    }

    /// What may be left after a power cut when this many things had been done.
    pub fn image(&self, done: usize, random: &mut Random) -> Contents {
        let state = self.lock();
        let mut image = state.start.clone();
        let mut unsynced: Vec<Done> = Vec::new();
        let mut unnamed: Vec<Naming> = Vec::new();
        for done in &state.done[..done] {
            match done {
                Done::Name(naming) => unnamed.push(naming.clone()),
                Done::SyncDir => unnamed.drain(..).for_each(|naming| image.name(&naming)),
                Done::Sync { inode } => {
                    let of_file = |done: &mut Done| match done {
                        Done::Write { inode: of, .. } | Done::SetLen { inode: of, .. } => of == inode,
                        _ => false,
                    };
                    unsynced.extract_if(.., of_file).for_each(|done| image.apply(&done));
                }
                other => unsynced.push(other.clone()),
            }
        }
        image.apply_some(&unsynced, random);
        let named = random.below(unnamed.len() as u64 + 1) as usize;
        unnamed[..named].iter().for_each(|naming| image.name(naming));
        // What has no name is gone.
        let Contents { names, inodes } = &mut image;
        inodes.retain(|inode, _| names.values().any(|named| named == inode));
        image
    }

    fn perform(&self, done: Done) -> io::Result<()> {
        let mut state = self.lock();
        let number = state.done.len();
        if let Some(fault) = state.fault
            && (number == fault.at || (fault.lasts && number > fault.at))
            // A full disk refuses nothing but writes.
            && (!is_full(fault.error) || matches!(done, Done::Write { .. }))
            && state.now.is_on(&done, fault.on)
        {
            if !fault.lasts {
                state.fault = None;
            }
            if let (true, Done::Write { inode, offset, bytes }) = (fault.short, &done) {
                let (inode, offset, bytes) = (*inode, *offset, bytes[..bytes.len() / 2].to_vec());
                let half = Done::Write { inode, offset, bytes };
                state.now.apply(&half);
                state.done.push(half);
            }
            return Err(io::Error::from(fault.error));
        }
        state.now.apply(&done);
        state.done.push(done);
        Ok(())
    }

    fn open(self: &Arc<Self>, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let inode = *self.lock().now.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(File { disk: Arc::clone(self), inode }))
    }
}

impl Files for Mounted {
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        Ok(Box::new(()))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().now.names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        self.0.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn StoreFile>> {
        let inode = {
            let mut state = self.0.lock();
            state.next_inode += 1;
            state.next_inode
        };
        self.0.perform(Done::Name(Naming::Create { name: name.to_owned(), inode }))?;
        self.0.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if !self.0.lock().now.names.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.0.perform(Done::Name(Naming::Rename { from: from.to_owned(), to: to.to_owned() }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.perform(Done::Name(Naming::Remove { name: name.to_owned() }))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.0.perform(Done::SyncDir)
    }
}

impl StoreFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.lock().now.inodes.get(&self.inode).map_or(0, Vec::len) as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let state = self.disk.lock();
        let offset = offset as usize;
        let file = state.now.inodes.get(&self.inode).map_or(&[][..], Vec::as_slice);
        let bytes = file.get(offset..offset + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.perform(Done::Write { inode: self.inode, offset, bytes: bytes.to_vec() })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.perform(Done::SetLen { inode: self.inode, len })
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.syncs.pass();
        self.disk.perform(Done::Sync { inode: self.inode })
    }
}
