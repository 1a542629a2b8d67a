# SPDX-License-Identifier: Apache-2.0
"""FT121: no file that coding agents take orders from."""

from fasttrack.finding import Level
from fasttrack.rules.confinement.listed_paths import ListedPaths, Listing


class AgentInstructions(ListedPaths):
    """Instructions, rules, skills and tool settings of coding agents."""

    id = "FT121"
    slug = "agent-instructions"
    title = "what coding agents are told stays as it is"
    level = Level.ROUTE
    refuses = (
        "A change to a file or folder that a coding agent reads for instructions, rules, skills, "
        "commands, hooks or tool servers, at every depth where agents look, in any spelling."
    )
    why = (
        "The next agent that works here obeys it, reviewers' agents included. It is the shortest "
        "way from one merged line to many others."
    )
    blind = "Instructions in other files that an agent happens to read; FT117 shows hidden ones."
    fix = "send it as a change of its own for ordinary review"
    listing = Listing(
        names=frozenset(
            {
                "agents.md",
                "agents.override.md",
                "agent.md",
                "claude.md",
                "claude.local.md",
                "gemini.md",
                "qwen.md",
                "warp.md",
                "replit.md",
                "skill.md",
                "copilot-instructions.md",
                ".cursorrules",
                ".cursorignore",
                ".windsurfrules",
                ".clinerules",
                ".roorules",
                ".goosehints",
                ".rules",
                ".mcp.json",
                "opencode.json",
                "opencode.jsonc",
                ".augment-guidelines",
                ".aider.conf.yml",
            }
        ),
        name_patterns=(".roorules-*", "*.instructions.md", "*.prompt.md", "*.chatmode.md"),
        folders=frozenset(
            {
                ".cursor",
                ".claude",
                ".codex",
                ".gemini",
                ".qwen",
                ".windsurf",
                ".clinerules",
                ".roo",
                ".kiro",
                ".junie",
                ".amazonq",
                ".continue",
                ".augment",
                ".trae",
                ".opencode",
                ".openhands",
                ".agent",
                ".agents",
            }
        ),
        paths=(
            ".github/instructions/**",
            ".github/prompts/**",
            ".github/chatmodes/**",
            ".github/agents/**",
            ".github/skills/**",
            ".github/hooks/**",
            ".vscode/mcp.json",
        ),
    )
    noun = "a file that coding agents take instructions from"
