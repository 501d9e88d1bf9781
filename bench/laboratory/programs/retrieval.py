"""An index of embeddings: a piece of the corpus at a time is scored, then its codes are kept; at last one is decoded to a wide table."""
import torch

from here import args, record

record("start")
encoder = torch.nn.Linear(args.width, args.code, bias=False).to("cuda")
decoder = torch.nn.Linear(args.narrow, args.table, bias=False).to("cuda")
queries = torch.randn(args.queries, args.width).to("cuda")
record("loaded")
codes = []
with torch.no_grad():
    for i in range(args.pieces):
        piece = torch.empty(args.piece, args.width, device="cuda")
        scores = queries @ piece.T
        best = scores.amax(dim=0)
        del scores
        code = encoder(piece)
        del piece
        codes.append(code)
        if args.empty_cache:
            torch.cuda.empty_cache()
        print(f"piece {i}", flush=True)
    table = decoder(codes[-1][:, :args.narrow])
    print(f"{len(codes)} pieces, table of {tuple(table.shape)}")
