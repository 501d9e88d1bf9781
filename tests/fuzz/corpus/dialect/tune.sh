stune run lora --config llama3_1/8B_lora batch_size=4 optimizer._component_=torch.optim.SGD
