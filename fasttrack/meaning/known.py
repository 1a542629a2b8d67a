# SPDX-License-Identifier: Apache-2.0
"""Functions and objects of Python and of the usual packages, by what calling or changing one does.

A name that ends in `.*` stands for everything below it. A row here is the whole of what the model
knows about a name; what is in no row is an ordinary foreign object.
"""

import re

MODULES = """
    sys.modules sys.path sys.meta_path sys.path_hooks sys.path_importer_cache importlib.*
    site.* pkgutil.* zipimport.*
"""
ENVIRONMENT = "os.environ os.environb"
HOOKS = """
    sys.excepthook sys.displayhook sys.unraisablehook sys.breakpointhook sys.stdout sys.stderr
    sys.stdin sys.ps1 threading.excepthook warnings.filters warnings.showwarning
    warnings.formatwarning warnings.simplefilter gc.callbacks signal.* atexit.*
"""
SETTINGS = """
    torch.backends.* torch._dynamo.config.* torch._inductor.config.* torch._functorch.config.*
    torch.fx.experimental._config.* torch._C.* logging.root
    logging.lastResort logging.raiseExceptions logging.getLogger() triton.knobs.*
    matplotlib.rcParams decimal.getcontext() transformers.logging.*
"""
OPERATORS = "torch.ops torch.ops.* torch.library.*"

CALLS = {
    "modules": """
        importlib.reload importlib.invalidate_caches site.addsitedir pkgutil.extend_path
        sys.path_hooks.* imp.*
    """,
    "environment": """
        os.putenv os.unsetenv posix.putenv posix.unsetenv os.environ.update os.environ.setdefault
        os.environ.pop
        os.environ.clear os.environ.popitem dotenv.load_dotenv
    """,
    "registry": """
        codecs.register codecs.register_error copyreg.pickle copyreg.constructor
        copyreg.add_extension abc.ABCMeta.register mimetypes.add_type
        torch.serialization.add_safe_globals torch.utils.backcompat.*
    """,
    "code": """
        builtins.exec builtins.eval builtins.compile runpy.* code.* codeop.* types.FunctionType
        types.CodeType marshal.load marshal.loads pickle.load pickle.loads dill.load dill.loads
        cloudpickle.load cloudpickle.loads importlib.util.spec_from_file_location
        importlib.util.spec_from_loader importlib.util.module_from_spec
        importlib.machinery.SourceFileLoader importlib.machinery.SourcelessFileLoader
        importlib.machinery.ExtensionFileLoader timeit.timeit timeit.repeat timeit.Timer
        cProfile.run cProfile.runctx cProfile.Profile.run cProfile.Profile.runctx profile.run
        profile.runctx profile.Profile.run profile.Profile.runctx trace.Trace.run
        trace.Trace.runctx bdb.Bdb.run bdb.Bdb.runeval bdb.Bdb.runctx pdb.run pdb.runeval
        pdb.Pdb.run pdb.Pdb.runeval pydoc.importfile yaml.load yaml.load_all yaml.unsafe_load
        yaml.unsafe_load_all pickle.Unpickler pickle._Unpickler dill.Unpickler joblib.load
        pandas.read_pickle
    """,
    "native": """
        ctypes.CDLL ctypes.PyDLL ctypes.WinDLL ctypes.OleDLL ctypes.LibraryLoader ctypes.cdll
        ctypes.cdll.* ctypes.pydll.* ctypes.pythonapi ctypes.pythonapi.* ctypes.memmove
        ctypes.memset ctypes.cast ctypes.py_object.from_address cffi.* _ctypes.*
        gc.get_objects gc.get_referrers gc.get_referents sys._getframe sys._current_frames
        sys._getframemodulename inspect.currentframe inspect.stack inspect.trace
        inspect.getouterframes
        traceback.extract_stack traceback.walk_stack traceback.format_stack
        traceback.print_stack torch.classes.load_library torch.ops.load_library
    """,
    "process": """
        subprocess.run subprocess.Popen subprocess.call subprocess.check_call
        subprocess.check_output subprocess.getoutput subprocess.getstatusoutput
        os.system os.popen os.fork os.forkpty os.posix_spawn os.posix_spawnp
        os.execl os.execle os.execlp os.execlpe os.execv os.execve os.execvp os.execvpe os.spawnl
        os.spawnle os.spawnlp os.spawnlpe os.spawnv os.spawnve os.spawnvp os.spawnvpe os.startfile
        os.kill os.killpg os._exit pty.spawn pty.fork asyncio.create_subprocess_exec
        asyncio.create_subprocess_shell multiprocessing.Process multiprocessing.Pool
        multiprocessing.Manager multiprocessing.context.* multiprocessing.pool.Pool
        concurrent.futures.ProcessPoolExecutor concurrent.futures.process.ProcessPoolExecutor
        torch.multiprocessing.spawn torch.multiprocessing.Process torch.multiprocessing.Pool
        torch.multiprocessing.start_processes multiprocessing.get_context.Process
        multiprocessing.get_context.Pool multiprocessing.get_context.Manager
        torch.multiprocessing.get_context.Process torch.multiprocessing.get_context.Pool
        torch.multiprocessing.get_context.Manager asyncio.get_running_loop.subprocess_exec
        asyncio.get_running_loop.subprocess_shell asyncio.get_event_loop.subprocess_exec
        asyncio.get_event_loop.subprocess_shell asyncio.new_event_loop.subprocess_exec
        asyncio.new_event_loop.subprocess_shell
    """,
    "network": """
        socket.socket socket.create_connection socket.create_server socket.socketpair
        socket.fromfd socket.getaddrinfo socket.gethostbyname socket.gethostbyaddr
        urllib.request.urlopen urllib.request.urlretrieve urllib.request.build_opener
        urllib.request.install_opener http.client.HTTPConnection http.client.HTTPSConnection
        http.server.* socketserver.* requests.get requests.post requests.put requests.patch
        requests.delete requests.head requests.request requests.Session requests.session
        requests.api.* httpx.get httpx.post httpx.put httpx.patch httpx.delete httpx.request
        httpx.stream httpx.Client httpx.AsyncClient aiohttp.ClientSession aiohttp.request
        urllib3.PoolManager urllib3.ProxyManager urllib3.HTTPConnectionPool urllib3.request
        urllib3.HTTPSConnectionPool ftplib.* smtplib.* poplib.* imaplib.* nntplib.* telnetlib.*
        xmlrpc.* websockets.* websocket.* paramiko.* zmq.Context zmq.Socket
        zmq.asyncio.Context grpc.insecure_channel grpc.secure_channel grpc.server webbrowser.*
        asyncio.open_connection asyncio.start_server asyncio.open_unix_connection
        asyncio.get_running_loop.create_connection asyncio.get_running_loop.create_server
        asyncio.get_event_loop.create_connection asyncio.get_event_loop.create_server
        multiprocessing.connection.Client multiprocessing.connection.Listener
        logging.handlers.HTTPHandler logging.handlers.SocketHandler
        logging.handlers.DatagramHandler logging.handlers.SysLogHandler
        logging.handlers.SMTPHandler urllib.request.OpenerDirector urllib.request.URLopener
        urllib.request.FancyURLopener _socket.socket _socket.fromfd _socket.socketpair
        torch.distributed.TCPStore torch.distributed.rpc.init_rpc
        huggingface_hub.hf_hub_download huggingface_hub.snapshot_download
        torch.hub.load torch.hub.download_url_to_file torch.hub.load_state_dict_from_url
    """,
    "files": """
        os.remove os.unlink os.rename os.renames os.replace os.mkdir os.makedirs os.rmdir
        os.removedirs os.chmod os.chown os.lchown os.symlink os.link os.truncate os.ftruncate
        os.mkfifo os.mknod os.utime os.open os.write os.chdir os.chroot shutil.copy shutil.copy2
        shutil.copyfile shutil.copytree shutil.copymode shutil.copystat shutil.move shutil.rmtree
        shutil.chown shutil.make_archive shutil.unpack_archive torch.save numpy.save numpy.savez
        numpy.savez_compressed numpy.savetxt numpy.memmap sqlite3.connect dbm.open shelve.open
        safetensors.torch.save_file safetensors.numpy.save_file numpy.ndarray.tofile
        io.open codecs.open gzip.open bz2.open lzma.open os.fdopen
        zipfile.ZipFile.extract zipfile.ZipFile.extractall zipfile.ZipFile.writestr
        tarfile.open.extract tarfile.open.extractall tarfile.TarFile.extract
        tarfile.TarFile.extractall tarfile.TarFile.open.extractall logging.FileHandler
        logging.handlers.RotatingFileHandler logging.handlers.TimedRotatingFileHandler
        logging.handlers.WatchedFileHandler py_compile.compile compileall.compile_dir
        compileall.compile_file compileall.compile_path tempfile.NamedTemporaryFile
        tempfile.TemporaryFile tempfile.TemporaryDirectory tempfile.mkstemp tempfile.mkdtemp
    """,
    "hooks": """
        atexit.register atexit.unregister atexit._clear atexit._run_exitfuncs signal.signal
        signal.setitimer signal.alarm signal.set_wakeup_fd signal.siginterrupt
        signal.pthread_sigmask sys.settrace sys.setprofile sys.addaudithook sys.setrecursionlimit
        sys.setswitchinterval sys.set_int_max_str_digits sys.set_asyncgen_hooks
        sys.set_coroutine_origin_tracking_depth sys.activate_stack_trampoline sys.monitoring.*
        threading.settrace threading.setprofile threading.settrace_all_threads
        threading.setprofile_all_threads threading.stack_size threading.Thread threading.Timer
        _thread.start_new_thread _thread.start_new concurrent.futures.ThreadPoolExecutor
        concurrent.futures.thread.ThreadPoolExecutor os.register_at_fork faulthandler.enable
        faulthandler.register faulthandler.dump_traceback_later faulthandler.disable
        warnings.filterwarnings warnings.simplefilter warnings.resetwarnings gc.disable gc.enable
        gc.freeze gc.set_threshold gc.set_debug tracemalloc.start
        resource.setrlimit os.nice os.umask os.setpriority os.sched_setaffinity
        torch.autograd.graph.saved_tensors_hooks.__enter__
        torch.nn.modules.module.register_module_forward_hook
        torch.nn.modules.module.register_module_forward_pre_hook
        torch.nn.modules.module.register_module_full_backward_hook
        torch.nn.modules.module.register_module_backward_hook
        torch.nn.modules.module.register_module_buffer_registration_hook
        torch.nn.modules.module.register_module_module_registration_hook
        torch.nn.modules.module.register_module_parameter_registration_hook
    """,
    "settings": """
        torch.set_default_dtype torch.set_default_device torch.set_default_tensor_type
        torch.set_num_threads torch.set_num_interop_threads torch.set_float32_matmul_precision
        torch.set_grad_enabled torch.autograd.set_grad_enabled torch.set_printoptions
        torch.set_warn_always torch.set_flush_denormal torch.set_deterministic_debug_mode
        torch.use_deterministic_algorithms torch.autograd.set_detect_anomaly
        torch.autograd.set_multithreading_enabled torch.fx.wrap torch._dynamo.allow_in_graph
        torch.compiler.allow_in_graph torch.compiler.disable torch._dynamo.disable
        torch.cuda.memory._record_memory_history torch.manual_seed
        torch.seed torch.set_rng_state torch.random.manual_seed torch.random.set_rng_state
        torch.cuda.manual_seed torch.cuda.manual_seed_all torch.cuda.seed torch.cuda.seed_all
        torch.cuda.set_rng_state torch.cuda.set_device torch.cuda.set_stream
        torch.cuda.set_per_process_memory_fraction torch.cuda.memory.set_allocator_settings
        torch.cuda.memory.change_current_allocator torch.cuda.memory._set_allocator_settings
        torch.cuda.caching_allocator_enable torch.cuda.tunable.enable torch.cuda.tunable.*
        torch.backends.cuda.enable_flash_sdp torch.backends.cuda.enable_math_sdp
        torch.backends.cuda.enable_mem_efficient_sdp torch.backends.cuda.enable_cudnn_sdp
        torch.backends.cuda.preferred_linalg_library torch.backends.cuda.preferred_blas_library
        torch.backends.cudnn.set_flags torch.backends.mkldnn.set_flags
        torch.backends.disable_global_flags
        torch.set_autocast_enabled torch.set_autocast_dtype torch.set_autocast_gpu_dtype
        torch.set_autocast_cpu_dtype torch.set_autocast_cache_enabled
        torch.multiprocessing.set_start_method torch.multiprocessing.set_sharing_strategy
        torch.jit.enable_onednn_fusion torch.jit.set_fusion_strategy torch._logging.set_logs
        torch._dynamo.reset torch._dynamo.disallow_in_graph torch._dynamo.forbid_in_graph
        torch._dynamo.config.update torch._inductor.config.update torch.compiler.reset
        torch._C._set_grad_enabled torch._C._jit_set_profiling_executor
        torch._C._jit_set_profiling_mode torch._C._set_cudnn_allow_tf32
        torch._C._set_cublas_allow_tf32 torch._C._set_deterministic_algorithms
        multiprocessing.set_start_method random.seed random.setstate numpy.random.seed
        numpy.random.set_state numpy.seterr numpy.seterrcall numpy.set_printoptions
        numpy.setbufsize logging.basicConfig logging.disable logging.captureWarnings
        logging.setLoggerClass logging.setLogRecordFactory logging.addLevelName
        logging.getLogger.parent logging.getLogger.manager logging.getLogger.root
        logging.config.dictConfig logging.config.fileConfig locale.setlocale
        decimal.setcontext socket.setdefaulttimeout asyncio.set_event_loop_policy
        asyncio.set_event_loop csv.field_size_limit time.tzset os.sync
        transformers.set_seed triton.set_allocator
    """,
    "work": """
        time.sleep torch.cuda.init torch.cuda.current_device torch.cuda.get_device_properties
        torch.cuda.get_device_capability torch.cuda.get_device_name torch.cuda.synchronize
        torch.cuda.mem_get_info torch.cuda.current_stream torch.cuda.Stream
        torch.cuda.default_stream torch.cuda.empty_cache torch.load
        torch.utils.cpp_extension.load torch.utils.cpp_extension.load_inline
        torch.distributed.init_process_group torch.distributed.new_group torch.distributed.barrier
        safetensors.torch.load_file
        safetensors.safe_open numpy.load builtins.input triton.compile cupy.RawModule
        cupy.RawKernel
    """,
}
"""Kind of effect to the calls that have it; a method is named after what made its object.

Of some it also depends on what is handed over: see `given`, and `open` in `intrinsics`.
"""

RESTORED = frozenset(
    [
        "torch.set_grad_enabled",
        "torch.autograd.set_grad_enabled",
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.set_multithreading_enabled",
        "torch._dynamo.config.patch",
        "torch._inductor.config.patch",
        "torch._functorch.config.patch",
        "concurrent.futures.ThreadPoolExecutor",
        "concurrent.futures.thread.ThreadPoolExecutor",
        *(
            f"torch.nn.modules.module.register_module_{kind}_hook"
            for kind in (
                "forward",
                "forward_pre",
                "full_backward",
                "backward",
                "buffer_registration",
                "module_registration",
                "parameter_registration",
            )
        ),
    ]
)
"""Calls whose effect a `with` statement takes back."""
WARNINGS = frozenset({"warnings.filterwarnings", "warnings.simplefilter", "warnings.resetwarnings"})
"""Calls that `warnings.catch_warnings` takes back."""

PATH_WRITES = frozenset(
    [
        "write_text", "write_bytes", "unlink", "mkdir", "touch", "rename", "replace", "rmdir",
        "symlink_to", "hardlink_to", "chmod",
    ]
)  # fmt: skip
"""Methods of `pathlib.Path` that change the file system."""
MUTATORS = frozenset(
    [
        "append", "appendleft", "extend", "extendleft", "insert", "pop", "popleft", "remove",
        "clear", "update", "setdefault", "popitem", "add", "discard", "sort", "reverse",
        "move_to_end", "difference_update", "intersection_update", "symmetric_difference_update",
        "__setitem__", "__delitem__", "__iadd__", "__ior__",
    ]
)  # fmt: skip
"""Methods by which a container is changed."""
ELEMENTS = frozenset({"get", "pop", "setdefault", "values", "items", "popitem", "__getitem__"})
"""Methods of a container that hand out what is in it."""

CONTAINERS = frozenset(
    [
        "sys.path",
        "sys.modules",
        "sys.meta_path",
        "sys.path_hooks",
        "sys.path_importer_cache",
        "sys.warnoptions",
        "os.environ",
        "os.environb",
        "gc.callbacks",
        "warnings.filters",
        "copyreg.dispatch_table",
        "linecache.cache",
        "logging.root.handlers",
        "logging.root.filters",
    ]
)
_CONTAINER_NAME = re.compile(
    r"_*[A-Z][A-Z0-9_]*$|__dict__$|__path__$|.*[\])]$|.*_(?:registry|table|map|list|dict|cache|hooks|handlers)$"
    r"|_?(?:registry|registrations|hooks|handlers|callbacks|backends|plugins)$"
)
REGISTERS = re.compile(r"(?:.*_)?(?:un|de)?register(?:_.*)?$")
"""Names of functions that put something into a table that others read."""


def looks_like_container(name: str) -> bool:
    """Whether a foreign object is known, or named, as a container and not as a module."""
    return name in CONTAINERS or bool(_CONTAINER_NAME.match(name.rpartition(".")[2]))
