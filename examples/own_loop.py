"""Train SpectraKAN in a loop of your own, with a plain PyTorch optimizer."""

import torch

import spectrakan as sk

data = sk.generate("darcy2d", num_samples=60, resolution=16)
inputs, targets = (torch.as_tensor(a, dtype=torch.float32) for a in (data.inputs, data.values))
train, test = slice(0, 50), slice(50, None)
signature = sk.OperatorSignature(space_dims=2, history=1, in_channels=1, out_channels=1,
                                 boundary=("dirichlet", "dirichlet"), steady=True)  # fmt: skip
torch.manual_seed(0)
model = sk.build_model("spectrakan", signature, width=16, num_modes=8)
model.fit_statistics(inputs[train], targets[train])  # units and everything else that comes from data
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for _ in range(20):
    for batch in torch.randperm(50).split(10):
        loss = torch.nn.functional.mse_loss(model(inputs[train][batch]), targets[train][batch][:, 0])
        optimizer.zero_grad()
        (loss / targets.var()).backward()
        optimizer.step()
model.calibrate(inputs[train], targets[train])  # the output filter, from the errors that are left
with torch.no_grad():
    print(f"test RMSE {(model(inputs[test]) - targets[test][:, 0]).square().mean().sqrt():.4f}")
