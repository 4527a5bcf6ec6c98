"""The compiled part of the package; all else about the build is in pyproject.toml."""

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError


class BuildExtension(build_ext):
    """Compile, or say in one sentence what is missing."""

    def build_extensions(self):
        if self.compiler.compiler_type == "unix":
            # Vectorized loops, without any other liberty with floating-point numbers.
            for extension in self.extensions:
                extension.extra_compile_args = [
                    "-O3",
                    "-fopenmp-simd",
                    "-fno-math-errno",
                    "-fno-trapping-math",
                ]
        try:
            super().build_extensions()
        except CompileError as error:
            raise SystemExit(
                "sparsestep has a part in C, and no C compiler was found or it failed; install one "
                "(Debian, Ubuntu: apt install gcc; macOS: xcode-select --install), or install a "
                f"wheel.\n{error}"
            ) from None


setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=[
        Extension(
            "sparsestep.annealing",
            ["src/sparsestep/annealing.pyx"],
            depends=["src/sparsestep/kernels.h"],
            # One wheel for Python 3.11 and later.
            define_macros=[("Py_LIMITED_API", "0x030B0000"), ("CYTHON_LIMITED_API", "1")],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
