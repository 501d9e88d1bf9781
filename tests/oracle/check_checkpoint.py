"""Does transformers read a full checkpoint that snug wrote, and get snug's logits?

    python tests/oracle/check_checkpoint.py MODEL_DIR TOKENS_JSON EXPECTED.safetensors [--tensor logits]

Loads MODEL_DIR in float32 (a tensor that is missing, left over or misshapen is an error), runs the first step of TOKENS_JSON (a
batch.json) and prints the norm-wise relative error against `logits` of EXPECTED. Exit code 1 above 1e-4.
"""

import oracle


def main():
    arguments = oracle.check_arguments(__doc__, "model")
    oracle.check_logits(oracle.read_model(arguments.model), arguments)


if __name__ == "__main__":
    main()
