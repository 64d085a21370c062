//! The file: header, metadata, list of tensors, and the numbers of one tensor at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::quant::Kind;
use crate::ModelError;

/// A value of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i128),
    /// A number.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// A text.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A list of numbers, or of yes (1) and no (0).
    Numbers(Vec<f64>),
}

/// A tensor in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Sizes, the one that varies slowest first, as Hugging Face writes them. (The file has them the other way round.)
    pub shape: Vec<usize>,
    /// The number format.
    pub kind: Kind,
    /// Where its numbers begin in the file.
    from: u64,
    /// Bytes that they take.
    bytes: u64,
}

/// An open file whose header has been read and checked.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: File,
    /// What the file says of the model.
    pub metadata: BTreeMap<String, Value>,
    /// Its tensors by their names in the file.
    pub tensors: BTreeMap<String, Info>,
}

impl Gguf {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// A file that is not GGUF, is cut off, or whose tensors do not lie in it; named by the tensor where there is one.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let io = |e| ModelError::io(path, e);
        let file = File::open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if !about.is_file() {
            return Err(io(std::io::Error::other("not a regular file")));
        }
        let (metadata, tensors) = header(BufReader::new(&file), about.len(), path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
            tensors,
        })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many numbers all tensors have.
    pub fn numbers(&self) -> u64 {
        let of = |info: &Info| info.shape.iter().map(|&n| n as u64).product::<u64>();
        self.tensors.values().map(of).sum()
    }

    /// The numbers of a tensor, row-major.
    ///
    /// # Errors
    /// A tensor that is not there, cannot be read, or holds what is not a finite number.
    pub fn values(&self, name: &str) -> Result<Vec<f32>, ModelError> {
        let fail = |why: String| tensor_error(&self.path, name, why);
        let info = self
            .tensors
            .get(name)
            .ok_or_else(|| fail("missing".into()))?;
        // Checked against the length of the file when the header was read.
        let size =
            usize::try_from(info.bytes).map_err(|_| fail("too large for this machine".into()))?;
        let mut bytes = vec![0; size];
        self.file
            .read_exact_at(&mut bytes, info.from)
            .map_err(|e| fail(format!("cannot be read: {e}")))?;
        let values = info.kind.dequantise(&bytes);
        match values.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(fail(format!("holds {x}: the file is damaged"))),
            None => Ok(values),
        }
    }
}

fn tensor_error(path: &Path, name: &str, why: String) -> ModelError {
    ModelError::Weights {
        path: path.to_owned(),
        tensor: name.to_owned(),
        why,
    }
}

/// Metadata and tensors.
type Header = (BTreeMap<String, Value>, BTreeMap<String, Info>);

/// Reads the header of a file of `length` bytes; `path` is only for messages.
fn header(reader: impl Read, length: u64, path: &Path) -> Result<Header, ModelError> {
    let fail = |why: String| ModelError::Gguf {
        path: path.to_owned(),
        why,
    };
    let mut r = Reader {
        inner: reader,
        at: 0,
        length,
    };
    let magic = r.bytes::<4>().map_err(fail)?;
    if &magic != b"GGUF" {
        return Err(fail("is not a GGUF file".into()));
    }
    let version = r.u32().map_err(fail)?;
    if !(2..=3).contains(&version) {
        return Err(fail(format!(
            "is GGUF of version {version}, or of the other byte order; only little-endian 2 and 3 are supported"
        )));
    }
    let (tensor_count, key_count) = (r.u64().map_err(fail)?, r.u64().map_err(fail)?);
    let mut metadata = BTreeMap::new();
    for i in 0..key_count {
        let of = |why: String| fail(format!("metadata {i} of {key_count}: {why}"));
        let key = r.text().map_err(of)?;
        let kind = r.u32().map_err(of)?;
        let value = r
            .value(kind)
            .map_err(|why| fail(format!("metadata {key}: {why}")))?;
        if metadata.insert(key.clone(), value).is_some() {
            return Err(fail(format!("metadata {key} is there twice")));
        }
    }
    let mut tensors = BTreeMap::new();
    for i in 0..tensor_count {
        let of = |why: String| fail(format!("tensor {i} of {tensor_count}: {why}"));
        let name = r.text().map_err(of)?;
        let info = r.info().map_err(|why| tensor_error(path, &name, why))?;
        if tensors.insert(name.clone(), info).is_some() {
            return Err(tensor_error(path, &name, "is there twice".into()));
        }
    }
    let alignment = match metadata.get("general.alignment") {
        None => 32,
        Some(Value::Int(n)) if (1..=1 << 20).contains(n) && n & (n - 1) == 0 => *n as u64,
        Some(other) => {
            return Err(fail(format!(
                "metadata general.alignment is {other:?}, not a power of two"
            )));
        }
    };
    // Not larger than `length` + `alignment`: all before has been read.
    let data = r.at.next_multiple_of(alignment);
    for (name, info) in &mut tensors {
        let place = data
            .checked_add(info.from)
            .and_then(|from| Some((from, from.checked_add(info.bytes)?)));
        match place {
            Some((from, to)) if to <= length => info.from = from,
            _ => {
                return Err(tensor_error(
                    path,
                    name,
                    format!(
                        "has {} bytes from byte {} of the data on, but the file ends after {}; it is incomplete: \
                         fetch it again",
                        info.bytes,
                        info.from,
                        length.saturating_sub(data)
                    ),
                ));
            }
        }
    }
    let mut places: Vec<(u64, u64, &String)> = tensors
        .iter()
        .map(|(name, info)| (info.from, info.from + info.bytes, name))
        .collect();
    places.sort();
    for pair in places.windows(2) {
        if pair[0].1 > pair[1].0 {
            let why = format!("lies over {} in the file, which is damaged", pair[0].2);
            return Err(tensor_error(path, pair[1].2, why));
        }
    }
    Ok((metadata, tensors))
}

/// Reads what a header is made of and knows how much can still come.
struct Reader<R> {
    inner: R,
    at: u64,
    length: u64,
}

impl<R: Read> Reader<R> {
    fn left(&self) -> u64 {
        self.length.saturating_sub(self.at)
    }

    fn ended(&self) -> String {
        format!(
            "the file ends in its header, after {} bytes; it is incomplete or damaged",
            self.length
        )
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        if self.left() < N as u64 {
            return Err(self.ended());
        }
        self.inner
            .read_exact(&mut bytes)
            .map_err(|e| e.to_string())?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.u64()?;
        if length > self.left() {
            return Err(self.ended());
        }
        let mut bytes = Vec::new();
        // Grows with what is there, not with what was announced.
        (&mut self.inner)
            .take(length)
            .read_to_end(&mut bytes)
            .map_err(|e| e.to_string())?;
        if (bytes.len() as u64) < length {
            return Err(self.ended());
        }
        self.at += length;
        String::from_utf8(bytes).map_err(|_| "holds a text that is not UTF-8".into())
    }

    /// A value that is no list.
    fn single(&mut self, kind: u32) -> Result<Value, String> {
        Ok(match kind {
            0 => Value::Int(u8::from_le_bytes(self.bytes()?).into()),
            1 => Value::Int(i8::from_le_bytes(self.bytes()?).into()),
            2 => Value::Int(u16::from_le_bytes(self.bytes()?).into()),
            3 => Value::Int(i16::from_le_bytes(self.bytes()?).into()),
            4 => Value::Int(self.u32()?.into()),
            5 => Value::Int(i32::from_le_bytes(self.bytes()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.bytes()?).into()),
            7 => Value::Bool(self.bytes::<1>()? != [0]),
            8 => Value::Text(self.text()?),
            10 => Value::Int(self.u64()?.into()),
            11 => Value::Int(i64::from_le_bytes(self.bytes()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.bytes()?)),
            other => return Err(format!("holds a value of the unknown type {other}")),
        })
    }

    fn value(&mut self, kind: u32) -> Result<Value, String> {
        if kind != 9 {
            return self.single(kind);
        }
        let (kind, count) = (self.u32()?, self.u64()?);
        if kind == 9 {
            return Err("is a list of lists, which no supported model has".into());
        }
        if kind == 8 {
            let mut all = Vec::new();
            for _ in 0..count {
                all.push(self.text()?);
            }
            return Ok(Value::Texts(all));
        }
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(match self.single(kind)? {
                Value::Int(n) => n as f64,
                Value::Float(x) => x,
                Value::Bool(b) => f64::from(u8::from(b)),
                _ => return Err(format!("holds a list of the unknown type {kind}")),
            });
        }
        Ok(Value::Numbers(all))
    }

    /// All of a tensor but its name; `from` is still counted from the beginning of the data.
    fn info(&mut self) -> Result<Info, String> {
        let dims = self.u32()?;
        if !(1..=4).contains(&dims) {
            return Err(format!("has {dims} dimensions, not 1 to 4"));
        }
        let mut shape = Vec::new();
        for _ in 0..dims {
            let n = self.u64()?;
            shape.push(usize::try_from(n).map_err(|_| format!("has a side of {n}"))?);
        }
        let kind = Kind::numbered(self.u32()?)?;
        let from = self.u64()?;
        let (numbers, size) = kind.block();
        if !shape[0].is_multiple_of(numbers) || shape.contains(&0) {
            return Err(format!(
                "has rows of {} numbers, which {} cannot hold: it has blocks of {numbers}",
                shape[0],
                kind.name()
            ));
        }
        let bytes = shape
            .iter()
            .try_fold(1u64, |n, &side| n.checked_mul(side as u64))
            .and_then(|n| (n / numbers as u64).checked_mul(size as u64))
            .ok_or_else(|| format!("has the impossible shape {shape:?}"))?;
        shape.reverse();
        Ok(Info {
            shape,
            kind,
            from,
            bytes,
        })
    }
}
