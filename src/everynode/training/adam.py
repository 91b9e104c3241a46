"""Adam without the wrapper of torch: building :class:`torch.optim.Adam` imports torch's compiler.

That import takes as long as ``import torch`` itself, and nothing here is compiled by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from everynode.settings import Settings


class Adam:
    r"""Adam with torch's fused kernel; the same numbers, bit for bit, as :class:`torch.optim.Adam`.

    For the gradient :math:`g_t` of a weight :math:`\theta` plus its weight decay
    :math:`\lambda \theta_{t-1}`:

    .. math::

        m_t = \beta_1 m_{t-1} + (1 - \beta_1) g_t, \quad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) g_t^2, \quad
        \theta_t = \theta_{t-1} - \gamma \frac{m_t / (1 - \beta_1^t)}
        {\sqrt{v_t / (1 - \beta_2^t)} + \epsilon}

    With AMSGrad, the largest :math:`v` so far replaces :math:`v_t`.

    Adam: A Method for Stochastic Optimization, https://arxiv.org/abs/1412.6980; On the Convergence
    of Adam and Beyond (AMSGrad), https://openreview.net/forum?id=ryQu7f-RZ

    Parameters
    ----------
    groups : iterable of dict
        Groups of weights: ``params``, ``lr`` and ``weight_decay`` each. The weights of a group
        have one type and one device.
    betas : tuple of float
        Decay of the two averages.
    eps : float
        Added to the denominator.
    amsgrad : bool
        Divide by the largest average of squared gradients so far.

    Attributes
    ----------
    param_groups : list of dict
        The groups, as in torch.
    state : dict
        The averages and the number of steps of each weight.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = Adam([{"params": [weight], "lr": 0.1, "weight_decay": 0.0}])
    >>> weight.square().sum().backward()
    >>> optimizer.step()
    >>> weight.data
    tensor([0.9000])
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        *,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        amsgrad: bool = Settings.amsgrad,
    ):
        # torch continues such a state with the same kernel only if the groups say "fused".
        rest = {"betas": betas, "eps": eps, "amsgrad": amsgrad, "fused": True}
        self.param_groups = [{**group, "params": [*group["params"]], **rest} for group in groups]
        self.state: dict[Tensor, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Drop the gradients of all weights."""
        for weight in self._weights():
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change every weight that has a gradient."""
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if not weights:
                continue
            states = [self._state(weight, group["amsgrad"]) for weight in weights]
            steps = [state["step"] for state in states]
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                weights,
                [weight.grad for weight in weights],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else [],
                steps,
                lr=group["lr"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=group["amsgrad"],
                maximize=False,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state in the format of torch, with weights as numbers."""
        numbers = {weight: number for number, weight in enumerate(self._weights())}
        return {
            "state": {numbers[weight]: dict(state) for weight, state in self.state.items()},
            "param_groups": [
                {**group, "params": [numbers[weight] for weight in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a state of this optimizer, or of a :class:`torch.optim.Adam`."""
        weights = dict(enumerate(self._weights()))
        for group, loaded in zip(self.param_groups, state_dict["param_groups"], strict=True):
            group.update({name: loaded[name] for name in group if name != "params"})
        self.state = {
            weights[number]: {
                name: value.to(weights[number].device, copy=True) for name, value in state.items()
            }
            for number, state in state_dict["state"].items()
        }

    def _weights(self) -> Iterable[Tensor]:
        return (weight for group in self.param_groups for weight in group["params"])

    def _state(self, weight: Tensor, amsgrad: bool) -> dict[str, Tensor]:
        """Return the state of a weight; it starts at zero."""
        if weight not in self.state:
            averages = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if amsgrad else [])]
            self.state[weight] = {
                "step": torch.zeros((), device=weight.device),
                **{name: torch.zeros_like(weight) for name in averages},
            }
        return self.state[weight]
