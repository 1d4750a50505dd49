//! Members that a source adds, changes and removes, in lists. A long list is taken in parts: its cursor is in
//! the batch, and the message is kept until all of it is done.

use serde_json::{Map, Value};

use super::effect::{Event, Verdict};
use super::turn::{Step, Turn};
use crate::message::{MemberEntry, Request};
use crate::rows::{
    ListCursor, MemberId, MemberKeyRow, MemberRow, MemberStatus, RetryFrom, Table, block_ids, normal_key,
};

/// Whether a list is done.
enum Listed {
    Done,
    More,
}

impl Turn<'_> {
    /// Adds members, updates those that exist, takes back those that had left.
    pub(super) fn put_members(&mut self, request: &Request, members: &[MemberEntry]) -> Step<Verdict> {
        if let Some(refused) = self.refuse_members() {
            return Ok(refused);
        }
        // A new member's steps are created by cursors; only one that returns needs all its rows.
        let listed = self.take_list(request, members, 2, |turn, entry| turn.put_member_entry(entry))?;
        Ok(verdict(&listed))
    }

    /// Removes members.
    pub(super) fn remove_members(&mut self, request: &Request, keys: &[String]) -> Step<Verdict> {
        if let Some(refused) = self.refuse_members() {
            return Ok(refused);
        }
        let is_going_on =
            self.batch().list_cursor.as_ref().is_some_and(|cursor| cursor.message == request.key);
        if !is_going_on && let Some(refused) = self.refuse_removal(keys)? {
            return Ok(refused);
        }
        let rows = self.rows_of_member();
        let listed = self.take_list(request, keys, rows, |turn, key| turn.remove_member_key(key))?;
        Ok(verdict(&listed))
    }

    /// Tries members again that are named.
    pub(super) fn retry_list(
        &mut self,
        request: &Request,
        ids: &[MemberId],
        from: RetryFrom,
    ) -> Step<Verdict> {
        let rows = self.rows_of_member();
        let listed = self.take_list(request, ids, rows, |turn, id| {
            if turn.batch().ordinal(*id).is_some() {
                turn.retry_member(*id, from)?;
            }
            Ok(())
        })?;
        Ok(verdict(&listed))
    }

    /// Refuses a removal of members that the batch never had, or that have all left.
    fn refuse_removal(&self, keys: &[String]) -> Step<Option<Verdict>> {
        let batch = self.batch().id;
        let mut changes = false;
        for key in keys {
            let Some(found) = self.rows.member_key(&normal_key(key))? else {
                let key = segno_actions::document::shown(key);
                return Ok(Some(Verdict::NotFound(format!(
                    "batch {batch} has no member with the key {key:?}"
                ))));
            };
            let member = self.rows.member(found.batch_member_id)?;
            changes |= found.is_current
                || member.is_some_and(|member| member.status != MemberStatus::Removed || member.is_returning);
        }
        let have_left = "all these members have left the batch already".to_owned();
        Ok((!changes).then_some(Verdict::Refused(have_left)))
    }

    fn refuse_members(&self) -> Option<Verdict> {
        let batch = self.batch();
        let is_over = batch.status.is_terminal() || batch.ending.is_some();
        is_over
            .then(|| Verdict::Refused(format!("batch {} has ended, its members no longer change", batch.id)))
    }

    /// Takes as many entries of a list as fit into a part, from where the last part ended.
    fn take_list<T>(
        &mut self,
        request: &Request,
        list: &[T],
        rows_of_entry: u32,
        mut take: impl FnMut(&mut Self, &T) -> Step<()>,
    ) -> Step<Listed> {
        let cursor = self.batch().list_cursor.as_ref();
        let done =
            cursor.filter(|cursor| cursor.message == request.key).map_or(0, |cursor| cursor.done as usize);
        let entries = (self.context.rows_per_part / rows_of_entry.max(1)).max(1) as usize;
        let until = done.saturating_add(entries).min(list.len());
        for entry in &list[done.min(until)..until] {
            take(self, entry)?;
        }
        if until == list.len() {
            if self.batch().list_cursor.is_some() {
                self.batch_mut().list_cursor = None;
            }
            return Ok(Listed::Done);
        }
        let done = u32::try_from(until).unwrap_or(u32::MAX);
        self.batch_mut().list_cursor = Some(ListCursor { message: request.key.clone(), done });
        Ok(Listed::More)
    }

    fn put_member_entry(&mut self, entry: &MemberEntry) -> Step<()> {
        let key = normal_key(&entry.key);
        let Some(mut found) = self.rows.member_key(&key)?.cloned() else {
            return self.create_member(key, entry);
        };
        let id = found.batch_member_id;
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(()) };
        let is_changed = member.data != entry.data || member.member_key != entry.key;
        if found.digest != entry.digest || !found.is_current {
            found.digest.clone_from(&entry.digest);
            found.is_current = true;
            self.rows.put_member_key(found);
        }
        if is_changed {
            member.data.clone_from(&entry.data);
            member.member_key.clone_from(&entry.key);
        }
        if member.status != MemberStatus::Removed {
            if is_changed {
                self.rows.put_member(member);
            }
            return Ok(());
        }
        let is_leaving = member.is_leaving();
        // While its removal steps run, it waits for their end.
        member.is_returning = is_leaving;
        self.rows.put_member(member);
        if is_leaving { Ok(()) } else { self.welcome_back(id) }
    }

    fn create_member(&mut self, key: String, entry: &MemberEntry) -> Step<()> {
        let now = self.now();
        let ordinal = self.batch().members;
        if ordinal >= self.batch().member_blocks.capacity() {
            let last = self.batch().member_blocks.last();
            let first = self.rows.take_ids(Table::BatchMembers, block_ids(1), last)?;
            self.batch_mut().member_blocks.push(first);
        }
        let is_late = self.batch().is_sealed;
        self.batch_mut().members += 1;
        let Some(id) = self.batch().member_id(ordinal) else { return Ok(()) };
        let digest = entry.digest.clone();
        self.rows.put_member_key(MemberKeyRow { key, batch_member_id: id, digest, is_current: true });
        self.rows.put_member(MemberRow {
            id,
            batch_id: self.batch().id,
            member_key: entry.key.clone(),
            status: MemberStatus::Active,
            added_at: now,
            removed_at: None,
            add_dispatched_at: Some(now),
            remove_dispatched_at: None,
            ordinal,
            data: entry.data.clone(),
            worker_data: Map::<String, Value>::new(),
            failed_at: None,
            first_seen_at: now,
            last_seen_at: None,
            is_current: true,
            rollback_of: None,
            rollback_runs: 0,
            removal_state: None,
            removal_runs: 0,
            removal_steps: 0,
            removal_error: None,
            is_returning: false,
        });
        if is_late {
            self.announce_member_added(id, entry.key.clone());
            self.announce(Event::Member { member: id, status: MemberStatus::Active });
        }
        Ok(())
    }

    fn remove_member_key(&mut self, key: &str) -> Step<()> {
        let Some(mut found) = self.rows.member_key(&normal_key(key))?.cloned() else { return Ok(()) };
        let id = found.batch_member_id;
        found.is_current = false;
        self.rows.put_member_key(found);
        self.remove_if_present(id)?;
        Ok(())
    }

    /// Removes a member unless it has left. Returns whether something changed.
    pub(super) fn remove_if_present(&mut self, id: MemberId) -> Step<bool> {
        let Some(mut member) = self.rows.member(id)?.cloned() else { return Ok(false) };
        if member.status != MemberStatus::Removed {
            self.remove_member(id)?;
            return Ok(true);
        }
        let was_returning = member.is_returning;
        if was_returning {
            member.is_returning = false;
            self.rows.put_member(member);
        }
        Ok(was_returning)
    }
}

fn verdict(listed: &Listed) -> Verdict {
    match listed {
        Listed::Done => Verdict::Applied,
        Listed::More => Verdict::Again,
    }
}
