//! A simulated appender: it reads committed output, writes, syncs and acknowledges, and may crash between
//! any two of these steps.

use super::Bug;
use super::dice::Dice;
use crate::ledger::{Command, MemoryTables, Position};

#[derive(Default)]
pub(super) struct SimAppender {
    /// Bytes that survive a crash.
    disk: Vec<u8>,
    /// Bytes written since the last sync. A crash may lose some of them.
    cache: Vec<u8>,
    seq: u64,
    open: bool,
    /// Everything written is synced and waits for its acknowledgement.
    synced: bool,
}

fn tail_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

impl SimAppender {
    /// Takes one step: open, write some bytes, sync, or acknowledge.
    pub(super) fn step(
        &mut self,
        dice: &mut Dice,
        position: &Position,
        committed: &MemoryTables,
        bug: Bug,
    ) -> Result<Option<Command>, String> {
        if !self.open {
            self.reopen(position)?;
            return Ok(None);
        }
        if self.synced {
            self.synced = false;
            return Ok(Some(self.ack(self.seq, 0)));
        }
        let fresh = committed.output.iter().filter(|output| output.seq > self.seq);
        let fresh: Vec<_> = fresh.take(dice.between(1, 3) as usize).collect();
        if let Some(last) = fresh.last() {
            let bytes: Vec<u8> = fresh.iter().flat_map(|one| one.block.bytes.clone()).collect();
            if bug == Bug::AckBeforeWrite && dice.chance(500) {
                let mut ahead = SimAppender { cache: bytes, ..SimAppender::default() };
                ahead.disk.clone_from(&self.disk);
                ahead.disk.extend_from_slice(&self.cache);
                return Ok(Some(ahead.ack(last.seq, ahead.cache.len())));
            }
            self.cache.extend_from_slice(&bytes);
            self.seq = last.seq;
        }
        if !self.cache.is_empty() && dice.chance(500) {
            self.disk.append(&mut self.cache);
            self.synced = true;
        }
        Ok(None)
    }

    fn ack(&self, seq: u64, extra: usize) -> Command {
        let mut file = self.disk.clone();
        file.extend_from_slice(&self.cache[..extra]);
        let mark = tail_of(&file).to_le_bytes().to_vec();
        let position = Position { seq, bytes: file.len() as u64, mark };
        Command::Ack { appender: 0, position }
    }

    /// Truncates the file at the position and continues there.
    fn reopen(&mut self, position: &Position) -> Result<(), String> {
        let length = position.bytes as usize;
        if self.disk.len() < length
            || (length > 0 && tail_of(&self.disk[..length]).to_le_bytes()[..] != position.mark)
        {
            return Err(String::from(
                "O2: the file is shorter than an acknowledged position, or differs from it",
            ));
        }
        self.disk.truncate(length);
        (self.seq, self.open) = (position.seq, true);
        Ok(())
    }

    /// Crashes. Some unsynced bytes may have reached the disk.
    pub(super) fn crash(&mut self, dice: &mut Dice) {
        let kept = dice.below(self.cache.len() as u64 + 1) as usize;
        self.disk.extend_from_slice(&self.cache[..kept]);
        self.cache.clear();
        (self.open, self.synced) = (false, false);
    }

    pub(super) fn is_at(&self, seq: u64, position: &Position) -> bool {
        self.open && self.seq == seq && position.seq == seq && self.cache.is_empty()
    }

    pub(super) fn file(&self) -> &[u8] {
        &self.disk
    }
}
