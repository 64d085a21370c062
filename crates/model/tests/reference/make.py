"""Makes the tiny random models beside this file, and what Hugging Face transformers computes with them.

    python -m venv venv && venv/bin/pip install torch transformers
    venv/bin/python crates/model/tests/reference/make.py

Each folder has config.json and weights as that family publishes them: llama3 with scaled rotary positions in one f32
file and the older names of the keys; qwen2 with biases, tied, in bf16 shards with an index; qwen3 with norms on q and
k, in f16, as transformers itself saves it. `expected.safetensors` holds, for prompt i, `tokens.i` [n], `logits.i` [n, v]
and `greedy.i` (the likeliest 64 further tokens). The seed is fixed, but another version of PyTorch may draw other
weights: make all files anew together.
"""

import json
import shutil
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

HERE = Path(__file__).parent
LENGTHS = [1, 7, 30, 90]
COMMON = dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2)
# Wavelengths of 6, 20, 63 and more positions: one below, two between and the rest above the limits 16 and 64.
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def random_weights(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() == 2:
            p.data = noise * (1.5 / p.shape[1] ** 0.5)
        elif name.endswith("bias"):
            p.data = noise * 0.5
        else:
            p.data = 1 + 0.3 * noise


@torch.no_grad()
def expected(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(1)
    out = {}
    for i, n in enumerate(LENGTHS):
        tokens = torch.randint(3, model.config.vocab_size, (n,), generator=generator)
        out[f"tokens.{i}"] = tokens.int()
        out[f"logits.{i}"] = model(tokens[None]).logits[0].contiguous()
        grown, least = tokens, float("inf")
        for _ in range(64):
            top = model(grown[None]).logits[0, -1].topk(2)
            least = min(least, float(top.values[0] - top.values[1]))
            grown = torch.cat([grown, top.indices[:1]])
        # Below the rounding of a sum in another order, the likeliest token would be a matter of chance.
        assert least > 2e-4, f"prompt {i}: two tokens are as likely ({least}); take another seed"
        out[f"greedy.{i}"] = grown[n:].int()
    # The same prompts side by side, padded at the left, as a check of the reference itself.
    longest = max(LENGTHS)
    batch, mask, place = [], [], []
    for i, n in enumerate(LENGTHS):
        pad = longest - n
        batch.append(torch.cat([torch.zeros(pad, dtype=torch.long), out[f"tokens.{i}"].long()]))
        mask.append(torch.cat([torch.zeros(pad), torch.ones(n)]))
        place.append((torch.cumsum(mask[-1], 0) - 1).clamp(min=0).long())
    logits = model(torch.stack(batch), attention_mask=torch.stack(mask), position_ids=torch.stack(place)).logits
    for i, n in enumerate(LENGTHS):
        assert (logits[i, longest - n:] - out[f"logits.{i}"]).abs().max() < 1e-4
    save_file(out, folder / "expected.safetensors", {"transformers": transformers.__version__})


def make(name, config, seed, dtype, **save):
    """Random weights that are rounded to `dtype`, in a folder of the published layout."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model = AutoModelForCausalLM.from_config(config)
    random_weights(model, seed)
    model.to(dtype).save_pretrained(folder, **save)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def main():
    old = dict(COMMON, head_dim=16, rms_norm_eps=1e-5)
    folder = make("llama3", LlamaConfig(**old, rope_parameters=dict(LLAMA3, rope_theta=10000.0)), 3, torch.float32)
    published = dict(old, architectures=["LlamaForCausalLM"], model_type="llama", rope_theta=10000.0,
                     rope_scaling=LLAMA3, attention_bias=False, attention_dropout=0.0, hidden_act="silu",
                     initializer_range=0.02, mlp_bias=False, pretraining_tp=1, tie_word_embeddings=False,
                     torch_dtype="float32", transformers_version="4.43.0", use_cache=True, eos_token_id=[2, 5])
    (folder / "config.json").write_text(json.dumps(published, indent=2) + "\n")
    expected(folder)

    config = Qwen2Config(**COMMON, tie_word_embeddings=True, rms_norm_eps=1e-6,
                         rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    expected(make("qwen2", config, 5, torch.bfloat16, max_shard_size="12KB"))

    config = Qwen3Config(**COMMON, head_dim=12, tie_word_embeddings=False, rms_norm_eps=1e-6,
                         rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    expected(make("qwen3", config, 7, torch.float16))


if __name__ == "__main__":
    main()
