"""Makes the folder gguf from the models that make.py made, with the gguf package of llama.cpp.

    venv/bin/pip install torch safetensors gguf
    venv/bin/python crates/model/tests/reference/gguf_files.py

`llama.gguf` mixes number formats, and `llama.safetensors` has what the package dequantises them to, in Hugging Face's
order; qwen2.gguf and qwen3.gguf hold the numbers of their models without loss. `quants.safetensors` has random blocks of
every format and the numbers that the package makes of them.
"""

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Q
from safetensors.torch import load_file, save_file

HERE = Path(__file__).parent
OUT = HERE / "gguf"
BLOCK = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
         "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
MIX = {"self_attn.q_proj": Q.Q4_0, "self_attn.k_proj": Q.Q4_1, "self_attn.v_proj": Q.Q8_0, "self_attn.o_proj": Q.F16,
       "mlp.gate_proj": Q.BF16, "mlp.up_proj": Q.Q8_0, "mlp.down_proj": Q.F32}
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def name_of(name):
    stem, kind = name.rsplit(".", 1)
    fixed = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    if stem in fixed:
        return f"{fixed[stem]}.{kind}", stem
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{BLOCK[part]}.{kind}", part


def adjacent(w, heads):
    """llama.cpp's order of the rows of q and k: the two components that turn together side by side."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def write(family, kind_of):
    folder = HERE / ("llama3" if family == "llama" else family)
    config = json.loads((folder / "config.json").read_text())
    weights = {}
    for file in folder.glob("model*.safetensors"):
        weights |= load_file(file)
    w = gguf.GGUFWriter(OUT / f"{family}.gguf", family)
    heads, kv_heads, size = config["num_attention_heads"], config["num_key_value_heads"], config.get("head_dim")
    w.add_block_count(config["num_hidden_layers"])
    w.add_context_length(config["max_position_embeddings"])
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_head_count(heads)
    w.add_head_count_kv(kv_heads)
    w.add_rope_freq_base(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_file_type(0)
    if size:
        w.add_key_length(size)
        w.add_value_length(size)
    if family == "llama":
        w.add_vocab_size(config["vocab_size"])
        w.add_rope_dimension_count(size)
        # What Llama 3.1 has: factor 8 for wavelengths over 8192, none under 2048, between them a mixture.
        frequencies = config["rope_theta"] ** (-np.arange(0, size, 2) / size)
        waves = 2 * np.pi / frequencies
        smooth = (8192 / waves - 1) / 3
        divisors = np.where(waves < 2048, 1, np.where(waves > 8192, 8, 1 / ((1 - smooth) / 8 + smooth)))
        w.add_tensor("rope_freqs.weight", divisors.astype(np.float32))
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPRSTW0123456789ĠĊ."
    pieces = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *letters]
    pieces += ["th", "in"][: config["vocab_size"] - len(pieces)]
    assert len(pieces) == config["vocab_size"], len(pieces)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre({"llama": "llama-bpe"}.get(family, "qwen2"))
    w.add_token_list(pieces)
    w.add_token_types([3, 3, 3] + [1] * (len(pieces) - 3))
    w.add_token_merges([f"{p[0]} {p[1]}" for p in pieces if len(p) == 2])
    w.add_bos_token_id(0)
    w.add_eos_token_id(2)
    w.add_add_bos_token(family == "llama")
    w.add_chat_template(TEMPLATE)
    expected = {}
    for name, value in sorted(weights.items()):
        to, part = name_of(name)
        value = value.float().numpy()
        kind = kind_of(part) if value.ndim == 2 else Q.F32
        stored = value
        if family == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
            stored = adjacent(value, heads if "q_proj" in part else kv_heads)
        data = gguf.quants.quantize(np.ascontiguousarray(stored), kind)
        w.add_tensor(to, data, raw_dtype=kind)
        expected[name] = torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(value, kind), kind).copy())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return expected


def blocks():
    rng = np.random.default_rng(5)
    out = {}
    for kind in (Q.F32, Q.F16, Q.BF16, Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.Q4_K, Q.Q6_K):
        numbers, size = gguf.GGML_QUANT_SIZES[kind]
        n = 3 if numbers > 1 else 64
        raw = rng.integers(0, 256, (n, size), dtype=np.uint8)
        # Scales of ordinary size, also negative and denormal ones; random bits would give infinities.
        scale = np.array([0.37, -0.011, 3e-6], np.float16).view(np.uint8).reshape(3, 2)
        if kind in (Q.F32, Q.F16, Q.BF16):
            number = rng.standard_normal(n).astype(np.float32)
            number[:2] = 0.0, -6e-8
            raw = gguf.quants.quantize(number[:, None], kind).view(np.uint8).reshape(n, size)
        elif kind == Q.Q6_K:
            raw[:, -2:] = scale
        else:
            raw[:, :2] = scale
            if kind in (Q.Q4_1, Q.Q4_K):
                raw[:, 2:4] = scale[::-1]
        name = kind.name
        out[f"{name}.bytes"] = torch.from_numpy(raw.reshape(-1).copy())
        out[f"{name}.values"] = torch.from_numpy(gguf.quants.dequantize(raw, kind).reshape(-1).astype(np.float32).copy())
    save_file(out, OUT / "quants.safetensors")


save_file(write("llama", lambda part: MIX.get(part, Q.Q8_0)), OUT / "llama.safetensors")
write("qwen2", lambda _: Q.BF16)
write("qwen3", lambda _: Q.F16)
blocks()
