"""Makes templates/expected.json and templates/tokenizer.json: dialogs as Hugging Face transformers renders them.

    venv/bin/python crates/model/tests/reference/templates.py

The templates beside them: that of SmolLM2 (Apache-2.0), and two that say what those of Llama 3.1 and Qwen3 say of dialogs
without tools, written anew. The tokeniser is a small byte-level BPE with the markers of all three.
"""

import json
from pathlib import Path

import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).parent / "templates"
MARKERS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>"]
# Qwen3 has these as added tokens that are no control tokens.
THOUGHTS = ["<think>", "</think>"]
THOUGHT = "<think>\nTwo numbers, one line.\n</think>\n\n"


def message(role, content):
    return {"role": role, "content": content}


FIRST = [message("user", "Print the sum of two numbers.")]
LATER = [message("assistant", "```python\nprint(sum(map(int, input().split())))\n```"),
         message("user", "Expected `5`, got `6`.\nTry again."),
         message("assistant", "```python\na, b = map(int, input().split())\nprint(a + b)\n```"),
         message("user", "  Äpfel & <b>Birnen</b> 'quoted' \"twice\" {{ braces }} {% tags %}\n")]
DIALOGS = {
    "one turn": FIRST,
    "system": [message("system", " Answer in Python. \n"), *FIRST],
    "three turns": [*FIRST, *LATER],
    "system, three turns": [message("system", "Answer in Python."), *FIRST, *LATER],
    "thoughts": [FIRST[0], message("assistant", THOUGHT + LATER[0]["content"]), LATER[1],
                 message("assistant", THOUGHT + LATER[2]["content"]), LATER[3]],
}


def tokenizer():
    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    texts = [m["content"] for d in DIALOGS.values() for m in d] * 3 + ["system user assistant Cutting Knowledge Date"] * 3
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=MARKERS, show_progress=False,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    bare.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=bare, bos_token=MARKERS[0], eos_token=MARKERS[5])
    fast.add_tokens(THOUGHTS)
    return fast


def main():
    fast = tokenizer()
    (HERE / "tokenizer.json").write_text(fast.backend_tokenizer.to_str(pretty=False))
    out = {"transformers": transformers.__version__}
    for file in sorted(HERE.glob("*.jinja")):
        fast.chat_template = file.read_text()
        out[file.stem] = {}
        for name, dialog in DIALOGS.items():
            options = dict(add_generation_prompt=True)
            text = fast.apply_chat_template(dialog, tokenize=False, **options)
            tokens = fast.apply_chat_template(dialog, tokenize=True, return_dict=False, **options)
            ended = fast.apply_chat_template(dialog[:-1], tokenize=False) if len(dialog) > 2 else ""
            out[file.stem][name] = {"messages": dialog, "text": text, "tokens": tokens, "ended": ended}
    (HERE / "expected.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


main()
