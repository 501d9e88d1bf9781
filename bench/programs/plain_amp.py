"""No trainer: fp16 with a loss scale, a model of one's own, momentum."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Embedding(50257, 768), *[Block(768, 12) for _ in range(12)], nn.LayerNorm(768), nn.Linear(768, 50257, bias=False)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    ids = torch.randint(50257, (8, 513), device=device)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {loss.item():.3f} peak {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
torch.save(model.state_dict(), "model.pt")
