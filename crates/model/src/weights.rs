//! Weights in and out as Hugging Face safetensors: one file or several with an index.
//!
//! Every tensor the network needs must be there with the right shape, and every tensor that is there must be
//! needed: a name left over means that the model is not what we take it for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView, View};

use crate::ModelError;
use crate::config::LlamaConfig;
use crate::folder::{INDEX, WEIGHTS};
use crate::llama::{Block, Llama};

/// Numbers of one tensor in f32, row-major, with the shape as in the file.
pub type Named = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Reads a file. A device or a pipe of that name, which might never end, is an error.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    std::fs::read(path)
}

/// The files that the weights in `dir` are in, each with the names of its tensors where an index tells them:
/// `model.safetensors`, or the shards that `model.safetensors.index.json` names.
fn files(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<String>>, ModelError> {
    let single = dir.join(WEIGHTS);
    if single.exists() {
        return Ok([(single, vec![])].into());
    }
    let index = dir.join(INDEX);
    // Neither file is there: the first is the one that people look for.
    if !index.exists() {
        let missing = std::io::ErrorKind::NotFound.into();
        return Err(ModelError::io(&single, missing));
    }
    let shards = shards(&index)?.into_iter();
    Ok(shards
        .map(|(file, names)| (dir.join(file), names))
        .collect())
}

/// The shards that an index names, by their file names, each with the names of its tensors.
///
/// # Errors
/// An index that cannot be read, or that names what is no file beside it.
pub fn shards(index: &Path) -> Result<BTreeMap<String, Vec<String>>, ModelError> {
    let fail = |why: String| ModelError::Config {
        path: index.to_owned(),
        why,
    };
    let text = read(index).map_err(|e| ModelError::io(index, e))?;
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let Index { weight_map } = serde_json::from_slice(&text).map_err(|e| fail(e.to_string()))?;
    let mut shards: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, file) in weight_map {
        if Path::new(&file).file_name() != Some(file.as_ref()) {
            return Err(fail(format!("shard {file:?} is not a file name")));
        }
        shards.entry(file).or_default().push(name);
    }
    Ok(shards)
}

/// Reads every tensor of a folder: of `model.safetensors`, or of the shards that `model.safetensors.index.json` names.
///
/// # Errors
/// A file that is missing or damaged, and a shard whose tensors are not those that the index says.
pub fn read_dir(dir: &Path) -> Result<Named, ModelError> {
    let mut all = Named::new();
    for (path, names) in files(dir)? {
        if names.is_empty() {
            return read_file(&path);
        }
        let mut shard = read_file(&path)?;
        let fail = |tensor: &str, why: &str| ModelError::Weights {
            path: path.clone(),
            tensor: tensor.into(),
            why: why.into(),
        };
        for name in names {
            let tensor = shard.remove_entry(&name);
            all.extend([tensor.ok_or_else(|| {
                fail(&name, "is in this shard by the index, but not in the file")
            })?]);
        }
        if let Some(name) = shard.keys().next() {
            let why = "is in the file, but not in this shard by the index; files of several models are mixed";
            return Err(fail(name, why));
        }
    }
    Ok(all)
}

/// Reads every tensor of one safetensors file.
pub fn read_file(path: &Path) -> Result<Named, ModelError> {
    let bytes = read(path).map_err(|e| ModelError::io(path, e))?;
    parse(&bytes, path)
}

/// Reads every tensor in the bytes of a safetensors file; `path` is only for messages.
pub fn parse(bytes: &[u8], path: &Path) -> Result<Named, ModelError> {
    let fail = |tensor: &str, why: String| ModelError::Weights {
        path: path.to_owned(),
        tensor: tensor.into(),
        why,
    };
    let file = SafeTensors::deserialize(bytes).map_err(|e| match cut(bytes) {
        Some((tensor, why)) => fail(&tensor, why),
        None => fail("(header)", e.to_string()),
    })?;
    let mut all = Named::new();
    for (name, view) in file.tensors() {
        let values = to_f32(&view).map_err(|why| fail(&name, why))?;
        if let Some(x) = values.iter().find(|x| !x.is_finite()) {
            let why = format!("holds {x}: the model is damaged, or its training went astray");
            return Err(fail(&name, why));
        }
        all.insert(name, (view.shape().to_vec(), values));
    }
    Ok(all)
}

/// The first tensor that a file of safetensors ends before the end of, if its header can be read.
fn cut(bytes: &[u8]) -> Option<(String, String)> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let header: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(rest.get(..length)?).ok()?;
    ends(&header, (rest.len() - length) as u64)
}

/// The first tensor that does not lie in `left` bytes of data.
fn ends(
    header: &serde_json::Map<String, serde_json::Value>,
    left: u64,
) -> Option<(String, String)> {
    let ends = header
        .iter()
        .filter_map(|(name, info)| Some((info["data_offsets"][1].as_u64()?, name)));
    let (end, name) = ends.filter(|(end, _)| *end > left).min()?;
    let why = format!(
        "ends at byte {end} of the data, of which the file has {left}; it is incomplete: fetch it again"
    );
    Some((name.clone(), why))
}

fn to_f32(view: &TensorView) -> Result<Vec<f32>, String> {
    let data = view.data();
    Ok(match view.dtype() {
        Dtype::F32 => data
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect(),
        Dtype::BF16 => data
            .chunks_exact(2)
            .map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16))
            .collect(),
        Dtype::F16 => data
            .chunks_exact(2)
            .map(|b| half_to_f32(u16::from_le_bytes([b[0], b[1]])))
            .collect(),
        other => {
            return Err(format!(
                "number format {other:?} is not supported, only F32, F16 and BF16"
            ));
        }
    })
}

pub(crate) fn half_to_f32(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * mantissa * 2f32.powi(-24),
        31 if mantissa == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        e => sign * (1.0 + mantissa / 1024.0) * 2f32.powi(e - 15),
    }
}

/// Numbers that become bytes when they are written, one tensor at a time.
struct InF32<'a> {
    shape: &'a [usize],
    values: &'a [f32],
}

impl View for InF32<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = self.values.iter().flat_map(|x| x.to_le_bytes());
        Cow::Owned(bytes.collect())
    }

    fn data_len(&self) -> usize {
        4 * self.values.len()
    }
}

/// Writes `tensors` to `path` in f32, under a temporary name first: a half-written file never has the real one.
pub fn write_file(path: &Path, tensors: &Named) -> Result<(), ModelError> {
    let fail = |tensor: &str, why: String| ModelError::Weights {
        path: path.to_owned(),
        tensor: tensor.into(),
        why,
    };
    for (name, (shape, values)) in tensors {
        if shape.iter().product::<usize>() != values.len() {
            let why = format!("has {} numbers for the shape {shape:?}", values.len());
            return Err(fail(name, why));
        }
    }
    let views = tensors
        .iter()
        .map(|(name, (shape, values))| (name, InF32 { shape, values }));
    let metadata = [("format".to_owned(), "pt".to_owned())].into();
    let partial = path.with_extension("partial");
    let written = safetensors::serialize_to_file(views, Some(metadata), &partial)
        .map_err(|e| match e {
            SafeTensorError::IoError(e) => ModelError::io(&partial, e),
            other => fail("(all)", other.to_string()),
        })
        .and_then(|()| std::fs::rename(&partial, path).map_err(|e| ModelError::io(path, e)));
    if written.is_err() {
        // On a full disk a half-written file would keep the space that the next try needs.
        let _ = std::fs::remove_file(&partial);
    }
    written
}

/// Name and shape of every tensor that a model of this shape has.
pub fn shapes(config: &LlamaConfig) -> BTreeMap<String, Vec<usize>> {
    let (d, f, e) = (
        config.hidden_size,
        config.intermediate_size,
        config.head_size(),
    );
    let (qe, ke) = (config.num_attention_heads * e, config.kv_heads() * e);
    let mut block = vec![
        ("input_layernorm.weight", vec![d]),
        ("self_attn.q_proj.weight", vec![qe, d]),
        ("self_attn.k_proj.weight", vec![ke, d]),
        ("self_attn.v_proj.weight", vec![ke, d]),
        ("self_attn.o_proj.weight", vec![d, qe]),
        ("post_attention_layernorm.weight", vec![d]),
        ("mlp.gate_proj.weight", vec![f, d]),
        ("mlp.up_proj.weight", vec![f, d]),
        ("mlp.down_proj.weight", vec![d, f]),
    ];
    if config.family().qkv_bias() {
        block.extend([
            ("self_attn.q_proj.bias", vec![qe]),
            ("self_attn.k_proj.bias", vec![ke]),
            ("self_attn.v_proj.bias", vec![ke]),
        ]);
    }
    if config.family().qk_norm() {
        block.extend([
            ("self_attn.q_norm.weight", vec![e]),
            ("self_attn.k_norm.weight", vec![e]),
        ]);
    }
    let mut all: BTreeMap<String, Vec<usize>> = [
        ("model.embed_tokens.weight", vec![config.vocab_size, d]),
        ("model.norm.weight", vec![d]),
    ]
    .map(|(name, shape)| (name.to_owned(), shape))
    .into();
    if !config.tie_word_embeddings {
        all.insert("lm_head.weight".into(), vec![config.vocab_size, d]);
    }
    for i in 0..config.num_hidden_layers {
        let name = |part: &str| format!("model.layers.{i}.{part}");
        all.extend(
            block
                .iter()
                .map(|(part, shape)| (name(part), shape.clone())),
        );
    }
    all
}

/// Takes out of what is there what may be there beside a model's tensors.
fn without_extras<T>(there: &mut BTreeMap<String, T>, config: &LlamaConfig) {
    if config.tie_word_embeddings {
        // Some exports write the tied head as well.
        there.remove("lm_head.weight");
    }
    // Buffers that old exports contain; they are computed here.
    there.retain(|name, _| !name.ends_with("rotary_emb.inv_freq"));
}

/// Checks that tensors of these names and shapes are a model's; `path` is only for messages.
///
/// # Errors
/// The first tensor that is missing, of another shape, or not part of such a model.
pub fn fits(
    mut there: BTreeMap<String, Vec<usize>>,
    config: &LlamaConfig,
    path: &Path,
) -> Result<(), ModelError> {
    let fail = |tensor: &str, why: String| ModelError::Weights {
        path: path.to_owned(),
        tensor: tensor.into(),
        why,
    };
    without_extras(&mut there, config);
    for (name, shape) in shapes(config) {
        match there.remove(&name) {
            Some(found) if found == shape => {}
            Some(found) => return Err(fail(&name, misfit(&found, &shape))),
            None => return Err(fail(&name, "missing".into())),
        }
    }
    match there.keys().next() {
        Some(name) => Err(fail(name, FOREIGN.into())),
        None => Ok(()),
    }
}

fn misfit(found: &[usize], shape: &[usize]) -> String {
    format!("has shape {found:?}, the configuration asks for {shape:?}")
}

const FOREIGN: &str =
    "is not part of this architecture; the model is of another kind than its config.json says";

/// A tensor in a safetensors file: its shape and number format.
pub type Described = (Vec<usize>, String);

/// Name, shape and number format of every tensor of a folder, from the headers of its files alone.
///
/// # Errors
/// As [`read_dir`].
pub fn describe_dir(dir: &Path) -> Result<BTreeMap<String, Described>, ModelError> {
    let mut all = BTreeMap::new();
    for path in files(dir)?.into_keys() {
        all.extend(describe_file(&path)?);
    }
    Ok(all)
}

fn describe_file(path: &Path) -> Result<BTreeMap<String, Described>, ModelError> {
    use std::io::Read;
    let io = |e| ModelError::io(path, e);
    let fail = |tensor: &str, why: String| ModelError::Weights {
        path: path.to_owned(),
        tensor: tensor.into(),
        why,
    };
    let mut file = std::fs::File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut announced = [0; 8];
    file.read_exact(&mut announced).map_err(io)?;
    let announced = u64::from_le_bytes(announced);
    let left = length.saturating_sub(8);
    if announced > left {
        return Err(fail(
            "(header)",
            "is not whole; fetch the file again".into(),
        ));
    }
    let mut header = Vec::new();
    file.take(announced).read_to_end(&mut header).map_err(io)?;
    let header: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&header).map_err(|e| fail("(header)", e.to_string()))?;
    if let Some((tensor, why)) = ends(&header, left - announced) {
        return Err(fail(&tensor, why));
    }
    let mut all = BTreeMap::new();
    for (name, info) in header {
        if name != "__metadata__" {
            let shape = serde_json::from_value(info["shape"].clone());
            let shape = shape.map_err(|e| fail(&name, e.to_string()))?;
            let format = info["dtype"].as_str().unwrap_or("?").to_owned();
            all.insert(name, (shape, format));
        }
    }
    Ok(all)
}

/// Takes tensors by name and keeps count of what is left.
struct Taker<'a> {
    named: Named,
    path: &'a Path,
    device: &'a Device,
}

impl Taker<'_> {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        let fail = |why: String| ModelError::Weights {
            path: self.path.to_owned(),
            tensor: name.into(),
            why,
        };
        let (found, values) = self
            .named
            .remove(name)
            .ok_or_else(|| fail("missing".into()))?;
        if found != shape {
            return Err(fail(misfit(&found, shape)));
        }
        Ok(values)
    }

    fn vector(&mut self, name: &str, n: usize) -> Result<Param<Tensor<1>>, ModelError> {
        let values = self.take(name, &[n])?;
        Ok(Param::from_tensor(Tensor::from_data(
            TensorData::new(values, [n]),
            self.device,
        )))
    }

    /// A vector that only some families have.
    fn optional(
        &mut self,
        there: bool,
        name: &str,
        n: usize,
    ) -> Result<Option<Param<Tensor<1>>>, ModelError> {
        there.then(|| self.vector(name, n)).transpose()
    }

    /// A table that is stored as it is used, `[rows, cols]`.
    fn table(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<Param<Tensor<2>>, ModelError> {
        let values = self.take(name, &[rows, cols])?;
        Ok(Param::from_tensor(Tensor::from_data(
            TensorData::new(values, [rows, cols]),
            self.device,
        )))
    }

    /// A linear layer: `[out, in]` in the file, `[in, out]` here.
    fn linear(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<Param<Tensor<2>>, ModelError> {
        let values = transpose(&self.take(name, &[outputs, inputs])?, outputs, inputs);
        Ok(Param::from_tensor(Tensor::from_data(
            TensorData::new(values, [inputs, outputs]),
            self.device,
        )))
    }
}

/// `[rows, cols]` row-major into `[cols, rows]`.
fn transpose(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    let mut out = vec![0.0; values.len()];
    for r in 0..rows {
        for c in 0..cols {
            out[c * rows + r] = values[r * cols + c];
        }
    }
    out
}

impl Llama {
    /// Builds the network from Hugging Face tensors; `path` is only for messages.
    pub fn from_named(
        named: Named,
        config: &LlamaConfig,
        path: &Path,
        device: &Device,
    ) -> Result<Self, ModelError> {
        let mut t = Taker {
            named,
            path,
            device,
        };
        let (d, f, e) = (
            config.hidden_size,
            config.intermediate_size,
            config.head_size(),
        );
        let (qe, ke) = (config.num_attention_heads * e, config.kv_heads() * e);
        let (biases, norms) = (config.family().qkv_bias(), config.family().qk_norm());
        let embed_tokens = t.table("model.embed_tokens.weight", config.vocab_size, d)?;
        let mut layers = Vec::new();
        for i in 0..config.num_hidden_layers {
            let p = format!("model.layers.{i}");
            layers.push(Block {
                input_layernorm: t.vector(&format!("{p}.input_layernorm.weight"), d)?,
                q_proj: t.linear(&format!("{p}.self_attn.q_proj.weight"), d, qe)?,
                k_proj: t.linear(&format!("{p}.self_attn.k_proj.weight"), d, ke)?,
                v_proj: t.linear(&format!("{p}.self_attn.v_proj.weight"), d, ke)?,
                o_proj: t.linear(&format!("{p}.self_attn.o_proj.weight"), qe, d)?,
                q_bias: t.optional(biases, &format!("{p}.self_attn.q_proj.bias"), qe)?,
                k_bias: t.optional(biases, &format!("{p}.self_attn.k_proj.bias"), ke)?,
                v_bias: t.optional(biases, &format!("{p}.self_attn.v_proj.bias"), ke)?,
                q_norm: t.optional(norms, &format!("{p}.self_attn.q_norm.weight"), e)?,
                k_norm: t.optional(norms, &format!("{p}.self_attn.k_norm.weight"), e)?,
                post_attention_layernorm: t
                    .vector(&format!("{p}.post_attention_layernorm.weight"), d)?,
                gate_proj: t.linear(&format!("{p}.mlp.gate_proj.weight"), d, f)?,
                up_proj: t.linear(&format!("{p}.mlp.up_proj.weight"), d, f)?,
                down_proj: t.linear(&format!("{p}.mlp.down_proj.weight"), f, d)?,
            });
        }
        let norm = t.vector("model.norm.weight", d)?;
        let lm_head = (!config.tie_word_embeddings)
            .then(|| t.linear("lm_head.weight", d, config.vocab_size))
            .transpose()?;
        without_extras(&mut t.named, config);
        if let Some(name) = t.named.keys().next() {
            return Err(ModelError::Weights {
                path: path.to_owned(),
                tensor: name.clone(),
                why: FOREIGN.into(),
            });
        }
        Ok(Self {
            embed_tokens,
            layers,
            norm,
            lm_head,
        })
    }

    /// The tensors under their Hugging Face names and shapes.
    pub fn to_named(&self) -> Result<Named, ModelError> {
        let mut out = Named::new();
        let table = |t: Tensor<2>| -> Result<(Vec<usize>, Vec<f32>), ModelError> {
            let dims = t.dims().to_vec();
            Ok((dims, values(t)?))
        };
        let linear = |t: &Param<Tensor<2>>| -> Result<(Vec<usize>, Vec<f32>), ModelError> {
            let [i, o] = t.val().dims();
            Ok((vec![o, i], transpose(&values(t.val())?, i, o)))
        };
        let vector = |t: &Param<Tensor<1>>| -> Result<(Vec<usize>, Vec<f32>), ModelError> {
            Ok((t.val().dims().to_vec(), values(t.val())?))
        };
        out.insert(
            "model.embed_tokens.weight".into(),
            table(self.embed_tokens.val())?,
        );
        for (i, b) in self.layers.iter().enumerate() {
            let p = format!("model.layers.{i}");
            out.insert(
                format!("{p}.input_layernorm.weight"),
                vector(&b.input_layernorm)?,
            );
            out.insert(format!("{p}.self_attn.q_proj.weight"), linear(&b.q_proj)?);
            out.insert(format!("{p}.self_attn.k_proj.weight"), linear(&b.k_proj)?);
            out.insert(format!("{p}.self_attn.v_proj.weight"), linear(&b.v_proj)?);
            out.insert(format!("{p}.self_attn.o_proj.weight"), linear(&b.o_proj)?);
            out.insert(
                format!("{p}.post_attention_layernorm.weight"),
                vector(&b.post_attention_layernorm)?,
            );
            for (name, part) in [
                ("q_proj.bias", &b.q_bias),
                ("k_proj.bias", &b.k_bias),
                ("v_proj.bias", &b.v_bias),
                ("q_norm.weight", &b.q_norm),
                ("k_norm.weight", &b.k_norm),
            ] {
                if let Some(part) = part {
                    out.insert(format!("{p}.self_attn.{name}"), vector(part)?);
                }
            }
            out.insert(format!("{p}.mlp.gate_proj.weight"), linear(&b.gate_proj)?);
            out.insert(format!("{p}.mlp.up_proj.weight"), linear(&b.up_proj)?);
            out.insert(format!("{p}.mlp.down_proj.weight"), linear(&b.down_proj)?);
        }
        out.insert("model.norm.weight".into(), vector(&self.norm)?);
        if let Some(head) = &self.lm_head {
            out.insert("lm_head.weight".into(), linear(head)?);
        }
        Ok(out)
    }
}

/// A tensor's numbers on the host.
pub fn values<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, ModelError> {
    let data = tensor.into_data();
    data.convert::<f32>()
        .into_vec::<f32>()
        .map_err(|e| ModelError::Compute(format!("{e:?}")))
}
