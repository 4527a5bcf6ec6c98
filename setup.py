"""The compiled part of the package; all else about the build is in pyproject.toml."""

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

# Vectorized loops, and no other liberty with floating-point numbers.
FLAGS = ["-O3", "-g0", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math"]


class BuildExtension(build_ext):
    """Compile, or say in one sentence what is missing."""

    def build_extension(self, extension):
        if self.compiler.compiler_type == "unix":
            extension.extra_compile_args = FLAGS
        try:
            super().build_extension(extension)
        except CompileError:
            raise SystemExit(
                "A part of sparsestep is in C and could not be compiled: install a C compiler "
                "(Debian and Ubuntu: apt install gcc; macOS: xcode-select --install)."
            ) from None


setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=[
        Extension(
            "sparsestep.solvers.annealing",
            ["src/sparsestep/solvers/annealing.pyx"],
            depends=["src/sparsestep/solvers/kernels.h"],
            # One wheel for Python 3.11 and later.
            define_macros=[("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
