"""A vision transformer and a convolutional network, as torchvision's users train them."""
import torch
from torch import nn
from transformers import ViTConfig, ViTForImageClassification

vit = ViTForImageClassification(ViTConfig(num_labels=10)).cuda()
cnn = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).cuda()
for model, call in ((vit, lambda x: vit(pixel_values=x).logits), (cnn, cnn)):
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(2):
        loss = nn.functional.cross_entropy(call(torch.randn(8, 3, 224, 224, device="cuda")), torch.zeros(8, dtype=torch.long, device="cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
