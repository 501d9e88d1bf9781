"""BERT-sized text classification with dynamic padding, adafactor."""
from datasets import load_dataset
from transformers import (AutoTokenizer, BertConfig, BertForSequenceClassification, DataCollatorWithPadding, Trainer, TrainingArguments)

tokenizer = AutoTokenizer.from_pretrained("google-bert/bert-base-uncased")
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
model = BertForSequenceClassification(BertConfig(num_labels=2))
data = load_dataset("stanfordnlp/imdb")
data = data.map(lambda rows: {**tokenizer(rows["text"], truncation=True, max_length=256), "labels": rows["label"]}, batched=True,
                remove_columns=["text", "label"])
trainer = Trainer(model=model, train_dataset=data["train"], eval_dataset=data["test"].select(range(32)), data_collator=DataCollatorWithPadding(tokenizer),
                  args=TrainingArguments(output_dir="out", max_steps=3, per_device_train_batch_size=16, fp16=True, optim="adafactor", report_to="none"))
trainer.train()
trainer.evaluate()
