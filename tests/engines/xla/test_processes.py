"""What needs a process of its own: start-up, import cost, several virtual devices."""

import textwrap

MANY = """
    import os, numpy as np
    import primal.engines.xla as xla
    from primal.engines.xla.client import Client, Signature
    from primal.ir.avals import Aval
    c = {client}
    assert len(c.devices) == {n}, c.devices
    assert [d.id for d in c.devices] == list(range({n})) and c.local_devices == c.devices
    assert {{d.platform for d in c.devices}} == {{'cpu'}}
    assert repr(c.devices[1]) == 'CpuDevice(id=1)'
    V = Aval((4,), np.dtype('f4'))
    text = '''module @m {{ func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {{
      %0 = stablehlo.add %a, %a : tensor<4xf32>
      return %0 : tensor<4xf32> }} }}'''
    for device in c.devices:
        exe = c.compile(text, Signature((V,), (V,)), device)
        x = c.put(np.arange(4, dtype='f4'), device)
        assert c.device_of(x) is device
        y, = exe.execute([x])
        assert c.device_of(y) is device and c.get(y).tolist() == [0, 2, 4, 6]
    there = c.devices[1]
    moved = c.copy(c.put(np.ones(4, 'f4'), c.devices[0]), there)
    assert c.device_of(moved) is there and c.copy(moved, there) is moved
    assert c.get(exe.execute([c.copy(moved, c.devices[-1])])[0]).tolist() == [2, 2, 2, 2]
    from primal.base.errors import JaxRuntimeError
    try:
        exe.execute([c.put(np.ones(4, 'f4'), c.devices[0])])
    except JaxRuntimeError as e:
        assert 'is on device' in str(e)
    else:
        raise SystemExit('a buffer on the wrong device was accepted')
    loaded = c.load(exe.serialize(), there)
    assert c.get(loaded.execute([moved])[0]).tolist() == [2, 2, 2, 2]
    assert os.environ.get('NPROC') is None
    print('ok')
"""


def _many(client: str, n: int) -> str:
    return textwrap.dedent(MANY).format(client=client, n=n)


def test_virtual_devices_by_argument(fresh_process) -> None:
    assert fresh_process(_many("Client('cpu', 4)", 4)).stdout.strip() == "ok"


def test_virtual_devices_by_setting(fresh_process) -> None:
    code = _many("xla.XlaEngine('cpu').client", 3)
    assert fresh_process(code, env={"PRIMAL_NUM_CPU_DEVICES": "3"}).stdout.strip() == "ok"


def test_virtual_devices_by_xla_flags(fresh_process) -> None:
    code = _many("xla.XlaEngine('cpu').client", 2)
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    assert fresh_process(code, env=flags).stdout.strip() == "ok"


def test_start_up_logs_nothing(fresh_process) -> None:
    done = fresh_process("from primal.engines.xla import XlaEngine; print(XlaEngine().devices())")
    assert done.stdout.strip() == "[CpuDevice(id=0)]"
    assert done.stderr == ""


def test_importing_and_lowering_load_no_jaxlib(fresh_process) -> None:
    code = """
        import sys
        import numpy as np
        import primal.engines.xla as xla
        from primal.ir.avals import Aval
        from primal.ir.jaxpr import ClosedJaxpr, Jaxpr, Var
        engine = xla.XlaEngine()
        v = Var(Aval((2,), np.dtype('f4')))
        text = engine.lower(ClosedJaxpr(Jaxpr([], [v], [v], [])))
        assert '@main' in text and not engine.started
        loaded = {m.split('.')[0] for m in sys.modules}
        assert not loaded & {'jaxlib', 'scipy', 'llvmlite', 'jax'}
        engine.devices()
        assert engine.started and 'jaxlib' in sys.modules
        assert 'scipy' not in sys.modules and 'jax' not in sys.modules
    """
    fresh_process(textwrap.dedent(code))


def test_a_missing_wheel_is_named(fresh_process) -> None:
    code = """
        import sys
        sys.modules['jaxlib'] = None
        import primal.engines.xla as xla
        try:
            xla.XlaEngine().devices()
        except ImportError as e:
            assert 'pip install jaxlib' in str(e), e
        else:
            raise SystemExit('no error')
    """
    fresh_process(textwrap.dedent(code))


def test_collectives_do_not_starve(fresh_process) -> None:
    """Queued runs over four devices need threads enough to meet: see `_room_for_collectives`."""
    code = """
        import numpy as np
        from primal.engines.xla.client import Client
        from primal.ir.avals import Aval
        c = Client('cpu', 4, asynchronous=True)
        b = c.bindings
        text = '''module @m attributes {mhlo.num_replicas = 4 : i32} {
          func.func public @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
            %0 = "stablehlo.all_reduce"(%a) <{
                replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
              ^bb0(%p: tensor<f32>, %q: tensor<f32>):
                %s = stablehlo.add %p, %q : tensor<f32>
                stablehlo.return %s : tensor<f32>
            }) : (tensor<1000xf32>) -> tensor<1000xf32>
            return %0 : tensor<1000xf32> } }'''
        options = b.xc.CompileOptions()
        build = options.executable_build_options
        options.num_replicas = build.num_replicas = 4
        grid = np.arange(4, dtype=np.int32).reshape(4, 1)
        options.device_assignment = b.xc.DeviceAssignment.create(grid)
        devices = b.device_list([d.raw for d in c.devices])
        exe = c.raw.compile_and_load(text, devices, options)
        everywhere = b.Placement(devices, b.xc.HloSharding.iota_tile([4]))
        parts = [np.full(1000, i, 'f4') for i in range(4)]
        x = b.raw.batched_device_put(Aval((4000,), np.dtype('f4')), everywhere, parts,
                                     [d.raw for d in c.devices], True, True,
                                     b.copy_on_put, True)
        handler = b.handler(Aval((4000,), np.dtype('f4')), everywhere)
        for _ in range(50):
            y, = exe.execute_sharded([x]).consume_with_handlers([handler])
        y.block_until_ready()
        print(c.get(y._arrays[0])[0])
    """
    assert fresh_process(textwrap.dedent(code)).stdout.strip() == "6.0"
