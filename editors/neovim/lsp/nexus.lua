--- The client, in the form that vim.lsp.config() reads. Override any field with vim.lsp.config('nexus', { … }).

local nexus = require('nexus')

---@type vim.lsp.Config
return {
  -- Connects to the daemon that all windows share, and starts it where none runs.
  cmd = { 'nexus', 'serve', '--remote=auto' },
  -- Python must not import from the folder that it is started in, nor from one that the shell named.
  cmd_env = { PYTHONPATH = '', PYTHONSAFEPATH = '1' },
  filetypes = { 'json', 'jsonc', 'markdown', 'toml' },
  -- The nearest directory with any of them is the folder: each layer has a context of its own.
  root_markers = { { '.nexus3', 'AGENTS.md', 'CLAUDE.md', '.git' } },
  root_dir = function(bufnr, on_dir)
    local path = vim.api.nvim_buf_get_name(bufnr)
    if nexus.reads(path) then
      on_dir(nexus.root(path))
    end
  end,
  -- The number of the protocol that this plugin speaks: the daemon says what to update if it speaks another.
  capabilities = { experimental = { nexus = { protocol = 1, assistantSessions = true } } },
  reuse_client = nexus.reuse_client,
  on_init = nexus.on_init,
  commands = {
    ['nexus.showInContext'] = function(command)
      require('nexus.view').lens(command)
    end,
    -- The daemon does what the lens of an MCP server says: it asks before it approves, and opens logs.
    ['nexus.showServer'] = function(command, context)
      local client = assert(vim.lsp.get_client_by_id(context.client_id))
      client:request('workspace/executeCommand', { command = command.command, arguments = command.arguments })
    end,
  },
  handlers = {
    ['nexus/context/didChange'] = nexus.on_context_change,
    ['$/progress'] = function(...)
      return require('nexus.chat').on_progress(...)
    end,
    ['nexus/tool/approve'] = function(...)
      return require('nexus.chat').on_approve(...)
    end,
    ['nexus/assistant/didChange'] = function(...)
      require('nexus.assistants').on_change(...)
    end,
  },
}
