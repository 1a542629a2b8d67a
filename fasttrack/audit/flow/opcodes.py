# SPDX-License-Identifier: Apache-2.0
"""What instructions are for, by their first word, as far as it is known.

An instruction that is in no table may do anything: the audit then says `unproven`.
"""

from fasttrack.audit.program import Instruction


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FLOATS = _words(
    """
    DADD DFMA DMMA DMNMX DMUL DSETP F2F F2FP F2I F2IP FADD FADD2 FADD32I FCHK FCMP FFMA FFMA2
    FFMA32I FHADD FHFMA FMNMX FMNMX3 FMUL FMUL2 FMUL32I FRND FSET FSWZADD HADD2 HADD2_32I HADD2_32
    HFMA2_32I HFMA2_32 HMMA HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 UF2F UF2FP UF2I UF2IP UFADD
    UFFMA UFMNMX UFMUL UFRND UFSET
    """
)
"""Arithmetic of which no result is worth knowing: no address or count comes from it."""

INTEGERS = _words(
    """
    HFMA2
    B2R BMMA BMOV BMSK BREV CREDUX CS2R CSMTEST ELECT FLO FSEL FSETP GETLMEMBASE I2F I2FP I2I I2IP
    IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMMA IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LEPC
    LOP LOP3 LOP32I MATCH MOV MOV32I MOVM MUFU OMMA P2R PLOP3 POPC PRMT PSETP QMMA QSPC R2B R2P R2UR
    REDUX S2R S2UR SEL SGXT SHF SHFL SHL SHR UBMSK UBREV UFLO UFSEL UFSETP UI2F UI2FP UI2I UI2IP
    UIABS UIADD3 UIMAD UIMNMX UISETP ULEA ULOP ULOP3 ULOP32I UMOV UMUFU UP2UR UPLOP3 UPOPC UPRMT
    UPSETP UR2UP UREDUX USEL USGXT USHF USHL USHR UVIADD UVIADDMNMX UVIMNMX UVIMNMX3 VABSDIFF
    VABSDIFF4 VHMNMX VIADD VIADDMNMX VIADDMNMX3 VIMNMX VIMNMX3 VOTE VOTEU
    """
)
"""Registers in, registers out."""

IDLE = _words(
    """
    ACQBULK ACQSHMINIT ARRIVES BAR BREAK BSSY BSYNC CCTL CCTLL CCTLT CGAERRBAR DEPBAR ENDCOLLECTIVE
    ERRBAR FENCE LDGDEPBAR MEMBAR NANOSLEEP NOP PMTRIG PREEXIT SETCTAID SETLMEMBASE SYNCS UBLKPF
    UCGABAR_ARV UCGABAR_WAIT USETMAXREG UTMACCTL UTMACMDFLUSH UTMAPF UVIRTCOUNT WARPGROUP
    WARPGROUPSET WARPSYNC YIELD
    """
)
"""No data moves: waits, hints, prefetches, and synchronisation, which has its own place."""

ON_CHIP = _words(
    """
    ATOMS BGMMA HGMMA IGMMA LDC LDCU LDL LDS LDSM LDT LDTM QGMMA REDAS STAS STL STS STSM STT STTM
    UGETNEXTWORKID ULDC UMEMSETS UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA UTCMXQMMA UTCOMMA UTCQMMA
    UTCSHIFT
    """
)
"""Memory of the block or cluster alone: shared, tensor, local and constant memory."""

CONTROL = _words("BPT BRA BRX BRXU CALL EXIT JMP JMX JMXU KILL RET")
"""Where control goes."""

READS = {
    "LDG": "load", "LD": "load", "LDGMC": "load", "LDGSTS": "copy", "ATOMG": "atomic",
    "ATOM": "atomic", "UTMALDG": "bulk", "UBLKCP": "bulk",
}  # fmt: skip
"""Reads of global memory, and how."""

WRITES = {
    "STG": "store", "ST": "store", "RED": "atomic", "REDG": "atomic", "UTMASTG": "bulk",
    "UTMAREDG": "bulk", "UBLKRED": "bulk",
}  # fmt: skip
"""Writes to global memory, and how. Atomics of `READS` write, too."""

KNOWN = FLOATS | INTEGERS | IDLE | ON_CHIP | CONTROL | READS.keys() | WRITES.keys()

_PAIRS = _words("DADD DFMA DMUL DMNMX CS2R")
_SIZES = {"64": 2, "96": 3, "128": 4, "256": 8, "WIDE": 2, "F64": 2, "S64": 2, "U64": 2}
_LOADS = READS.keys() | _words("LDC LDCU ULDC LDS LDL")
_TILES = {"HMMA": 4, "IMMA": 4, "QMMA": 4, "OMMA": 4, "BMMA": 4, "DMMA": 8}
_GROUP_TILES = _words("HGMMA QGMMA IGMMA BGMMA")


def width(instruction: Instruction) -> int:
    """How many registers from the first destination on an instruction may write; never too few."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode in _TILES:
        return _TILES[opcode]
    if opcode in _GROUP_TILES:
        return max(_columns(words) // 2, 4)
    if opcode in ("LDTM", "LDT"):
        return _tensor(words)
    if opcode == "LDSM":
        return next((int(word) for word in words if word in ("2", "4")), 4)
    if opcode in _PAIRS:
        return 1 if "32" in words else 2
    sizes = [_SIZES.get(word, 1) for word in words]
    return max(sizes, default=1) if opcode in _LOADS else 1 + (2 in sizes)


def _columns(words: tuple[str, ...]) -> int:
    """Columns of a tile, from its shape: `64x128x16`."""
    for word in words:
        sizes = word.split("x")
        if len(sizes) == 3 and all(size.isdigit() for size in sizes):
            return int(sizes[1])
    return 256


def _tensor(words: tuple[str, ...]) -> int:
    """Registers of a load from tensor memory: `16dp256bit.x8`."""
    times = next((int(word[1:]) for word in words if word[:1] == "x" and word[1:].isdigit()), 128)
    shape = next((word for word in words if "dp" in word), "")
    return times * {"64bit": 1, "32bit": 1, "128bit": 2, "256bit": 4}.get(shape[4:], 4)
