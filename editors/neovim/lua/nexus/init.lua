--- Which files Nexus reads, which folder they belong to, the one client, and what a folder's context costs.

local M = {}

--- Last usage by folder path: the `usage` of nexus/context/didChange.
---@type table<string, table>
M.usage = {}
--- By folder path, where an assistant is the view to show: its `name`, and its `usage`.
---@type table<string, table>
M.view = {}

--- Files outside the known places that are part of a context, such as imports: path → true.
local sources = {}

--- What waits for a client to be initialized: client id → functions.
local waiting = {}

local function set(...)
  local result = {}
  for _, name in ipairs({ ... }) do
    result[name] = true
  end
  return result
end

--- Directories of assistants: what is wrong in any of their files shows as one types.
local PROGRAM_DIRECTORIES = set('.claude', '.codex', '.cursor', '.gemini', '.opencode')
local CONFIG_DIRECTORIES = set('.nexus3', '.vscode', '.agents', '.github')
local INSTRUCTIONS = set(
  'NEXUS.md',
  'AGENTS.md',
  'AGENTS.override.md',
  'CLAUDE.md',
  'CLAUDE.local.md',
  'GEMINI.md',
  'copilot-instructions.md',
  'opencode.json',
  'opencode.jsonc',
  '.claude.json',
  '.mcp.json'
)

local function exists(path)
  return vim.uv.fs_stat(path) ~= nil
end

--- Directory of the global layer.
local function global_directory()
  local home = vim.env.NEXUS_HOME
  return vim.fs.normalize(home and home ~= '' and home or '~/.nexus3')
end

--- The `.nexus3` directory that a file is in, however deep, or nil.
local function nexus_directory(path)
  local global = global_directory()
  if vim.startswith(path, global .. '/') then
    return global
  end
  return path:match('^(.*/%.nexus3)/')
end

--- The directory of an assistant that a file is in, or nil.
---@param path string
---@return string?
function M.program_directory(path)
  for directory in vim.fs.parents(path) do
    if PROGRAM_DIRECTORIES[vim.fs.basename(directory)] then
      return directory
    end
  end
end

--- Whether Nexus reads this file: configuration and instruction files, not every JSON or Markdown file.
---@param path string absolute
---@return boolean
function M.reads(path)
  local name, directory = vim.fs.basename(path), vim.fs.dirname(path)
  local nexus = nexus_directory(path)
  if nexus then
    local config = (name == 'config.json' or name == 'mcp.json') and directory == nexus
    return config or vim.endswith(name, '.md')
  end
  if name == 'README.md' then
    return exists(directory .. '/.nexus3')
  end
  if M.program_directory(path) then
    return true
  end
  local skills = vim.fs.dirname(vim.fs.dirname(path))
  if name == 'SKILL.md' and vim.fs.basename(skills) == 'skills' then
    return true
  end
  return INSTRUCTIONS[name]
    or (name == 'mcp.json' and vim.fs.basename(directory) == '.vscode')
    or sources[path]
    or false
end

--- Folder whose context a file belongs to: the nearest directory with a root marker, else its own.
---@param path string absolute; a file or a directory
---@return string
function M.root(path)
  local directory = vim.fn.isdirectory(path) == 1 and path or vim.fs.dirname(path)
  local own = nexus_directory(path .. '/') or M.program_directory(path .. '/')
  if own then
    directory = vim.fs.dirname(own)
  elseif CONFIG_DIRECTORIES[vim.fs.basename(directory)] then
    directory = vim.fs.dirname(directory)
  end
  local global = global_directory()
  local markers = vim.iter(vim.lsp.config.nexus.root_markers):flatten():totable()
  -- ~/.nexus3 is the global layer: it doesn't make the home directory everyone's folder
  local found = vim.fs.find(function(name, parent)
    return vim.list_contains(markers, name) and vim.fs.joinpath(parent, name) ~= global
  end, { path = directory, upward = true })[1]
  return found and vim.fs.dirname(found) or directory
end

--- Folder of a buffer; of the current directory for a buffer that is no file.
---@param buffer? integer
---@return string
function M.folder(buffer)
  buffer = buffer or 0
  if vim.b[buffer].nexus_folder then
    return vim.b[buffer].nexus_folder
  end
  local path = vim.api.nvim_buf_get_name(buffer)
  return M.root((path == '' or vim.bo[buffer].buftype ~= '') and vim.fn.getcwd() or path)
end

local function when_ready(client, run)
  if client.initialized then
    run()
  else
    waiting[client.id] = waiting[client.id] or {}
    table.insert(waiting[client.id], run)
  end
end

function M.on_init(client)
  for _, run in ipairs(waiting[client.id] or {}) do
    run()
  end
  waiting[client.id] = nil
end

local function add_folder(client, path)
  local folder = { uri = vim.uri_from_fname(path), name = path }
  local folders = client.workspace_folders or {}
  if vim.iter(folders):any(function(known)
    return known.uri == folder.uri
  end) then
    return
  end
  client.workspace_folders = vim.list_extend(folders, { folder })
  when_ready(client, function()
    client:notify('workspace/didChangeWorkspaceFolders', { event = { added = { folder }, removed = {} } })
  end)
end

--- One daemon for all folders: a further folder is added to the client that runs already.
function M.reuse_client(client, config)
  if client.name ~= config.name or client:is_stopped() then
    return false
  end
  -- a file of the global layer belongs to every folder
  if config.root_dir and config.root_dir ~= vim.fs.dirname(global_directory()) then
    add_folder(client, config.root_dir)
  end
  return true
end

--- Run a function with the client once it is ready, starting the daemon and adding the folder if need be.
---@param folder string
---@param run fun(client: vim.lsp.Client)
function M.start(folder, run)
  local config = vim.deepcopy(vim.lsp.config.nexus)
  if type(config.cmd) == 'table' and vim.fn.executable(config.cmd[1]) == 0 then
    local what =
      'nexus: %s cannot be run. Install it (uv tool install nexusd) or say where it is: :help nexus-options'
    return vim.notify(what:format(config.cmd[1]), vim.log.levels.ERROR)
  end
  config.root_dir = folder
  local id = vim.lsp.start(config, { attach = false, reuse_client = config.reuse_client })
  local client = id and vim.lsp.get_client_by_id(id)
  if not client then
    return
  end
  when_ready(client, function()
    run(client)
  end)
end

--- Send a request about a folder, starting the daemon and adding the folder if need be. An error is shown.
---@param method string
---@param folder string
---@param params? table `workspaceFolder` is filled in; nil for a request that is about no folder
---@param on_result fun(result: table, client: vim.lsp.Client)
function M.request(method, folder, params, on_result)
  local place = { workspaceFolder = vim.uri_from_fname(folder) }
  local sent = params and vim.tbl_extend('force', params, place) or vim.empty_dict()
  M.start(folder, function(client)
    client:request(method, sent, function(err, result)
      if err then
        vim.notify('nexus: ' .. err.message, vim.log.levels.ERROR)
      else
        on_result(result, client)
      end
    end)
  end)
end

--- Ask for the view that a folder shows; where that is an assistant, for what that reads.
function M.refresh_view(client, folder_uri)
  if not client then
    return
  end
  local folder = { workspaceFolder = folder_uri }
  client:request('nexus/view/list', folder, function(_, listed)
    if not listed then
      return
    end
    local function keep(view)
      M.view[vim.uri_to_fname(folder_uri)] = view
      vim.cmd.redrawstatus({ bang = true })
    end
    if listed.chosen == 'nexus' then
      keep(nil)
      return
    end
    local asked = { workspaceFolder = folder_uri, assistant = listed.chosen }
    client:request('nexus/context/usage', asked, function(_, usage)
      if usage then
        keep({ name = listed.chosen, usage = usage })
      end
    end)
  end)
end

--- Handler of nexus/context/didChange: keeps the figures and fires `User NexusContextChanged`.
function M.on_context_change(_, params, context)
  M.usage[vim.uri_to_fname(params.workspaceFolder)] = params.usage
  M.refresh_view(context and vim.lsp.get_client_by_id(context.client_id), params.workspaceFolder)
  for _, row in ipairs(params.usage.rows) do
    if row.source then
      sources[vim.uri_to_fname(row.source.uri)] = true
    end
  end
  local all = vim.g.nexus_usage or vim.empty_dict()
  all[params.workspaceFolder] = params.usage
  vim.g.nexus_usage = all
  vim.api.nvim_exec_autocmds('User', { pattern = 'NexusContextChanged', modeline = false, data = params })
  vim.cmd.redrawstatus({ bang = true })
end

--- 950, 2.1k, 128k, 1M.
---@param tokens integer
---@return string
local function short(tokens)
  local value, unit = tokens, ''
  if tokens >= 999500 then
    value, unit = tokens / 1e6, 'M'
  elseif tokens >= 1000 then
    value, unit = tokens / 1e3, 'k'
  end
  return ((unit == '' or value >= 99.95) and '%.0f' or '%.1f'):format(value):gsub('%.0$', '') .. unit
end

--- What each request costs in a buffer's folder, of the view that is shown there: `nexus 2.1k/126k 1.7 %`,
--- `claude-code ≈30.1k/1M 3.0 %`; empty when nothing is known of it.
---@param buffer? integer
---@return string
function M.statusline(buffer)
  local path = vim.api.nvim_buf_get_name(buffer or 0)
  path = path ~= '' and path or vim.fn.getcwd()
  local innermost
  for folder in pairs(M.usage) do
    if vim.fs.relpath(folder, path) and #folder > #(innermost or '') then
      innermost = folder
    end
  end
  local view = innermost and M.view[innermost]
  local usage = view and view.usage or M.usage[innermost]
  if not usage then
    return ''
  end
  return ('%s %s%s/%s %.1f %%%s'):format(
    view and view.name or 'nexus',
    usage.counter.exact and '' or '≈',
    short(usage.total),
    short(usage.available),
    usage.percent,
    usage.over and ' over' or ''
  )
end

return M
