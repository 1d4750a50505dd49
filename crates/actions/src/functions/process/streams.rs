//! The input of a tool, and what it writes, read all at once and within bounds.

use std::fs::{File, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::PermissionsExt;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::super::secret::Redactor;
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
    /// What is kept of the log is as much longer as the secrets of the run, which are taken out before it is cut.
    pub(super) fn new(output_limit: usize, log_limit: usize, redactor: &Redactor) -> Self {
        let log = Tail::new(log_limit, redactor.margin_bytes());
        Captured { output: Vec::new(), output_limit, log }
    }

    /// Reads stdout and stderr until both are closed. Neither waits for the other.
    pub(super) async fn pump(&mut self, pipes: Pipes) -> Result<(), TooMuchOutput> {
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
        tokio::try_join!(read_output, read_log).map(|_| ())
    }
}

/// The input as a file without a name, which only this node and the tool can read, at its beginning.
pub(super) async fn input_file(input: &str) -> io::Result<File> {
    let input = input.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let mut file = tempfile::tempfile()?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(input.as_bytes())?;
        file.rewind()?;
        Ok(file)
    });
    written.await.map_err(io::Error::other)?
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

/// The end of a text that may be long, with a margin before it that is looked at and not shown.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
    margin: usize,
    total_bytes: u64,
}

impl Tail {
    fn new(limit: usize, margin: usize) -> Self {
        Tail { bytes: Vec::new(), limit, margin, total_bytes: 0 }
    }

    /// Keeps up to twice as much, so that most additions move nothing.
    fn push(&mut self, chunk: &[u8]) {
        let kept = self.limit + self.margin;
        self.total_bytes += chunk.len() as u64;
        self.bytes.extend_from_slice(chunk);
        if self.bytes.len() > 2 * kept {
            self.bytes.drain(..self.bytes.len() - kept);
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

    /// The end of it as text without secrets; bytes that are no text are shown as such. A line that is cut is left out if
    /// there are others.
    pub(super) fn text(&self, redactor: &Redactor) -> String {
        let mut text = redactor.tail(&String::from_utf8_lossy(&self.bytes), self.limit);
        if self.is_cut()
            && let Some(line_end) = text.find('\n')
        {
            text.drain(..=line_end);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::secret::SecretReference;

    #[test]
    fn a_tail_keeps_the_end_and_little_else() {
        let redactor = Redactor::default();
        let mut tail = Tail::new(15, 0);
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
            assert!(tail.bytes.len() <= 30);
        }
        assert_eq!(tail.text(&redactor), "line 9999\n");
        assert!(tail.is_cut());
        assert_eq!(tail.total_bytes(), 98_890);
        let mut short = Tail::new(10, 0);
        short.push(b"ab\xff");
        assert_eq!((short.text(&redactor).as_str(), short.is_cut()), ("ab\u{fffd}", false));
    }

    #[tokio::test]
    async fn no_part_of_a_secret_is_left_wherever_the_log_is_cut_and_however_it_comes() {
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "BEGIN-é-KEY\nBODY-OF-KEY\nEND-OF-KEY").unwrap();
        let mut redactor = Redactor::default();
        let reference = SecretReference::File(secret.path().to_owned());
        let secret = redactor.resolve(&reference).await.unwrap();
        let quoted = serde_json::to_string(secret.expose()).unwrap();
        for written in [secret.expose(), &quoted, "BODY-OF-KEY"] {
            // One line, several, and a tool that is killed while it writes.
            for (before, after) in [("x x x ", " y y y y y y"), ("x\nx\n", "\ny\ny"), ("\u{e9}", "")] {
                let line = format!("{}{written}{after}", before.repeat(30)).into_bytes();
                for limit in 1..line.len() {
                    for chunk_bytes in [1, 7, line.len()] {
                        let mut tail = Tail::new(limit, redactor.margin_bytes());
                        line.chunks(chunk_bytes).for_each(|chunk| tail.push(chunk));
                        let text = tail.text(&redactor);
                        let left = text.replace("[redacted]", "");
                        assert!(!left.contains(|c: char| c.is_ascii_uppercase()), "limit {limit}: {text}");
                    }
                }
                for end in 0..line.len() {
                    let mut tail = Tail::new(line.len(), redactor.margin_bytes());
                    tail.push(&line[..end]);
                    let left = tail.text(&redactor).replace("[redacted]", "");
                    let shown = left.chars().filter(char::is_ascii_uppercase).count();
                    assert!(shown < 4, "cut at {end}: {left}");
                }
            }
        }
    }
}
