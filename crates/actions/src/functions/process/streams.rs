//! Feeding a tool and reading what it says, all at once and within bounds.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;

use super::group::Pipes;

/// How much is read at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// The tool wrote more to stdout than it may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuchOutput;

/// What a tool has said so far.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) output: Vec<u8>,
    output_limit: usize,
    pub(super) log: Tail,
}

impl Captured {
    pub(super) fn new(output_limit: usize, log_limit: usize) -> Self {
        Captured { output: Vec::new(), output_limit, log: Tail::new(log_limit) }
    }

    /// Writes the input and reads stdout and stderr until both are closed. None of the three waits for another, so a tool
    /// may read its input late or never.
    pub(super) async fn pump(&mut self, pipes: Pipes, input: &[u8]) -> Result<(), TooMuchOutput> {
        let Captured { output, output_limit, log } = self;
        let read_output = read(pipes.stdout, |chunk| {
            let room = output_limit.saturating_sub(output.len());
            output.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room { Err(TooMuchOutput) } else { Ok(()) }
        });
        let read_log = read(pipes.stderr, |chunk| {
            log.push(chunk);
            Ok(())
        });
        let feed = async {
            feed(pipes.stdin, input).await;
            Ok(())
        };
        tokio::try_join!(read_output, read_log, feed).map(|_| ())
    }
}

/// Writes the input and closes the pipe. A tool that does not want it all is fine.
async fn feed(mut stdin: ChildStdin, input: &[u8]) {
    let _ = stdin.write_all(input).await;
    let _ = stdin.shutdown().await;
}

/// Hands on what comes until the pipe is closed. A pipe that cannot be read is as good as closed.
async fn read(
    mut pipe: impl AsyncRead + Unpin,
    mut take: impl FnMut(&[u8]) -> Result<(), TooMuchOutput>,
) -> Result<(), TooMuchOutput> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(bytes) => take(&chunk[..bytes])?,
        }
    }
}

/// The end of a text that may be long.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    total_bytes: u64,
}

impl Tail {
    fn new(limit: usize) -> Self {
        Tail { bytes: Vec::new(), limit, total_bytes: 0 }
    }

    /// Keeps up to twice the limit, so that most additions move nothing.
    fn push(&mut self, chunk: &[u8]) {
        self.total_bytes += chunk.len() as u64;
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > 2 * self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
        }
    }

    /// How much was written in all.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether the beginning is missing in [`Tail::text`].
    pub(super) fn is_cut(&self) -> bool {
        self.total_bytes > self.limit as u64
    }

    /// The end of it as text; bytes that are no text are shown as such. A line that is cut is left out: half a secret could
    /// not be recognized.
    pub(super) fn text(&self) -> String {
        let kept = &self.bytes[self.bytes.len().saturating_sub(self.limit)..];
        let line_end = kept.iter().position(|byte| *byte == b'\n').filter(|_| self.is_cut());
        String::from_utf8_lossy(&kept[line_end.map_or(0, |at| at + 1)..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_and_little_else() {
        let mut tail = Tail::new(15);
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
            assert!(tail.bytes.len() <= 30);
        }
        assert_eq!(tail.text(), "line 9999\n");
        assert!(tail.is_cut());
        assert_eq!(tail.total_bytes(), 98_890);
        let mut short = Tail::new(10);
        short.push(b"ab\xff");
        assert_eq!((short.text().as_str(), short.is_cut()), ("ab\u{fffd}", false));
    }
}
