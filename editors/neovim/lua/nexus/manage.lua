--- The commands for skills, agents, memory, documents and conversations of a folder, and for the daemon.

local nexus = require('nexus')
local page = require('nexus.page')
local text = require('nexus.text')
local show = require('nexus.view').show

local grouped, plural, short_path = text.grouped, text.plural, text.short_path

local M = {}

local MAIN = 'main'
local COMPLETION_MS = 500
local ACTIONS = { 'spawn', 'message', 'dispose' }
local USAGE =
  'use :NexusAgent spawn {name} [field=value …] [task], message {name} {text} or dispose {name}'
local FIELDS = { 'cwd', 'role', 'parent', 'model' }

local function notify(message, ...)
  vim.notify('nexus: ' .. message:format(...))
end

local function warn(message, ...)
  vim.notify('nexus: ' .. message:format(...), vim.log.levels.ERROR)
end

--- Those of the candidates that begin with what is typed.
local function matching(candidates, typed)
  return vim
    .iter(candidates)
    :filter(function(each)
      return vim.startswith(each, typed)
    end)
    :totable()
end

--- The words of a command line behind the command, and the number of the one that is being typed.
local function words_of(line, cursor)
  local words = vim.split(line:sub(1, cursor), '%s+')
  return { unpack(words, 2) }, #words - 1
end

--- Names for completion: only from a daemon that runs already, and only if it answers at once.
local function names(method, list, field)
  local client = vim.lsp.get_clients({ name = 'nexus' })[1]
  local params = { workspaceFolder = vim.uri_from_fname(nexus.folder()) }
  local answer = client and client:request_sync(method, params, COMPLETION_MS)
  return vim
    .iter(answer and answer.result and list(answer.result) or {})
    :map(function(each)
      return each[field]
    end)
    :totable()
end

-- ---------------------------------------------------------------- skills

--- The files of a folder's skills, of all layers.
local function skills_of(result)
  local files = {}
  for _, layer in ipairs(result.layers) do
    for _, file in ipairs(layer.files) do
      if file.name then
        table.insert(files, vim.tbl_extend('error', file, { layer = layer.name }))
      end
    end
  end
  return files
end

function M.complete_skill(typed)
  return matching(names('nexus/context/layers', skills_of, 'name'), typed)
end

--- Skills that the folder has and cannot use: their files have errors.
local function broken_skills_of(result)
  local files, is_wrong = {}, {}
  for _, problem in ipairs(result.problems or {}) do
    is_wrong[problem.uri] = is_wrong[problem.uri] or problem.severity == vim.diagnostic.severity.ERROR
  end
  for _, layer in ipairs(result.layers) do
    for _, file in ipairs(layer.files) do
      if file.kind == 'skill' and not file.name and is_wrong[file.uri] then
        local directory = vim.fs.dirname(vim.uri_to_fname(file.uri))
        table.insert(files, { name = vim.fs.basename(directory), layer = layer.name, uri = file.uri })
      end
    end
  end
  return files
end

--- :NexusSkills
function M.skills(call)
  show('skills', call, 'nexus/context/layers', {}, function(shown, result)
    local rows = {}
    for _, file in ipairs(skills_of(result)) do
      local cells = { file.name, file.layer, grouped(file.tokens or 0), file.description or '' }
      table.insert(rows, { cells = cells, target = { uri = file.uri } })
    end
    for _, file in ipairs(broken_skills_of(result)) do
      local cells = { file.name, file.layer, '', 'broken: its diagnostics say why' }
      table.insert(rows, { cells = cells, group = 'DiagnosticError', target = { uri = file.uri } })
    end
    if #rows == 0 then
      return page.add(shown, 'This folder has no skills. :help nexus-skills says where they are found.')
    end
    local columns = {
      { title = 'skill' },
      { title = 'layer' },
      { title = 'tokens', right = true },
      { title = 'description' },
    }
    page.table(shown, columns, rows)
  end)
end

--- :[line]NexusSkill[!] {name}
function M.skill(call)
  local params = { arguments = { name = call.args } }
  if not call.bang then
    return show('skill', call, 'nexus/skill/read', params, function(shown, result)
      page.add(shown, result.text)
    end)
  end
  local buffer, line = vim.api.nvim_get_current_buf(), call.line2
  nexus.request('nexus/skill/read', nexus.folder(), params, function(result)
    vim.api.nvim_buf_set_lines(buffer, line, line, false, vim.split(result.text, '\n'))
  end)
end

-- ---------------------------------------------------------------- agents

--- :NexusAgents
function M.agents(call)
  show('agents', call, 'nexus/agent/list', {}, function(shown, result)
    local rows = {}
    for _, agent in ipairs(result.agents) do
      local cells = {
        ('  '):rep(agent.depth) .. agent.agentId,
        agent.role,
        grouped(agent.usage.total),
        short_path(vim.uri_from_fname(agent.cwd), shown.folder),
        agent.task or '',
      }
      table.insert(rows, { cells = cells, target = { uri = vim.uri_from_fname(agent.cwd) } })
      if agent.notice then
        table.insert(rows, { cells = { '', '', '', '', agent.notice }, group = 'DiagnosticWarn' })
      end
    end
    if #rows == 0 then
      return page.add(shown, 'No agents are running in this folder.')
    end
    local columns = {
      { title = 'agent' },
      { title = 'role' },
      { title = 'tokens', right = true },
      { title = 'directory', tail = true },
      { title = 'task' },
    }
    page.table(shown, columns, rows)
  end)
end

local function agent_names()
  return names('nexus/agent/list', function(result)
    return result.agents
  end, 'agentId')
end

function M.complete_agent(typed, line, cursor)
  local words, number = words_of(line, cursor)
  if number == 1 then
    return matching(ACTIONS, typed)
  elseif number == 2 and words[1] ~= 'spawn' then
    return matching(agent_names(), typed)
  elseif number > 2 and words[1] == 'spawn' then
    return matching(
      vim.tbl_map(function(field)
        return field .. '='
      end, FIELDS),
      typed
    )
  end
  return {}
end

--- The fields `cwd=…` and so on at the beginning of words, and the words behind them as a text.
local function split_fields(words)
  local fields, first = {}, 1
  for index, word in ipairs(words) do
    local field, value = word:match('^(%l+)=(.+)$')
    if not vim.list_contains(FIELDS, field) then
      break
    end
    fields[field], first = value, index + 1
  end
  local rest = table.concat(words, ' ', first)
  return fields, rest ~= '' and rest or nil
end

local function spawn(id, words)
  local params, task = split_fields(words)
  params.agentId, params.task = id, task
  nexus.request('nexus/agent/spawn', nexus.folder(), params, function(agent)
    notify(
      '%s is running as %s in %s: %s, session %s',
      agent.agentId,
      agent.role,
      vim.fn.fnamemodify(agent.cwd, ':~'),
      plural(agent.usage.total, 'token'),
      agent.session
    )
  end)
end

local function message(id, words)
  local params = { source = MAIN, target = id, content = table.concat(words, ' ') }
  nexus.request('nexus/agent/message', nexus.folder(), params, function()
    notify('the message waits for the next turn of %s', id)
  end)
end

local function dispose(id)
  nexus.request('nexus/agent/dispose', nexus.folder(), { agentId = id }, function(result)
    notify('ended: %s', table.concat(result.disposed, ', '))
  end)
end

--- :NexusAgent {action} {agent} …
function M.agent(call)
  local run = ({ spawn = spawn, message = message, dispose = dispose })[call.fargs[1]]
  if not run or not call.fargs[2] then
    return warn(USAGE)
  end
  run(call.fargs[2], { unpack(call.fargs, 3) })
end

-- ---------------------------------------------------------------- memory and documents

--- :NexusMemory [words]
function M.memory(call)
  local query = call.args ~= '' and call.args or nil
  local params = {
    tool = query and 'query_l4_memory' or 'query_l2_memory',
    arguments = query and { query = query } or vim.empty_dict(),
  }
  show('memory', call, 'nexus/memory/query', params, function(shown, result)
    page.add(shown, result.text)
  end)
end

local function add_knowledge_status(shown, status)
  if #status.paths == 0 then
    return page.add(shown, 'This folder has no knowledge base: memory.knowledge.paths names its files.')
  end
  local searched = status.model and ('words and meaning (%s)'):format(status.model) or 'words'
  page.add(
    shown,
    ('%s in %s, searched by %s%s'):format(
      plural(status.passages, 'passage'),
      plural(status.files, 'file'),
      searched,
      status.updating and '; files are being indexed' or ''
    ),
    'Bold'
  )
  for _, path in ipairs(status.paths) do
    page.add(shown, short_path(vim.uri_from_fname(path), shown.folder))
  end
  for _, problem in ipairs(status.problems or {}) do
    page.add(shown, problem.message, 'DiagnosticWarn', problem)
  end
end

--- :NexusKnowledge [words]
function M.knowledge(call)
  if call.args == '' then
    return show('knowledge', call, 'nexus/knowledge/status', {}, add_knowledge_status)
  end
  show('knowledge', call, 'nexus/knowledge/query', { query = call.args }, function(shown, result)
    if #result.passages == 0 then
      page.add(shown, 'No passage matches' .. (result.updating and ' yet: files are being indexed.' or '.'))
    end
    for _, passage in ipairs(result.passages) do
      local place = ('%s:%d'):format(short_path(passage.uri, shown.folder), passage.range.start.line + 1)
      page.rule(shown, passage.heading and ('%s › %s'):format(place, passage.heading) or place)
      for index, line in ipairs(vim.split(passage.text, '\n')) do
        local at = { line = passage.range.start.line + index - 1, character = 0 }
        page.add(shown, line, nil, { uri = passage.uri, range = { start = at, ['end'] = at } })
      end
      page.add(shown, '')
    end
  end)
end

-- ---------------------------------------------------------------- conversations

function M.complete_session(typed)
  local function sessions(result)
    return result.sessions
  end
  return matching(names('nexus/session/list', sessions, 'session'), typed)
end

--- :NexusCompact [session]
function M.compact(call)
  local session = call.args ~= '' and call.args or MAIN
  nexus.request('nexus/session/compact', nexus.folder(), { session = session }, function(result)
    local receipt = result.receipt
    local lost = {}
    for _, kind in ipairs({ 'rules', 'paths', 'commands', 'identifiers', 'errors', 'instructions', 'decisions' }) do
      local count = receipt.lost.counts[kind] or 0
      if count > 0 then
        table.insert(lost, ('%s %s'):format(grouped(count), kind))
      end
    end
    notify(
      '%s: a summary replaces %s, %s → %s tokens (%s)%s. :NexusUndoCompaction restores them.',
      session,
      plural(receipt.replacedMessages, 'message'),
      grouped(receipt.tokensBefore),
      grouped(receipt.tokensAfter),
      receipt.summarizer,
      #lost > 0 and '; no longer there: ' .. table.concat(lost, ', ') or ''
    )
  end)
end

--- :NexusUndoCompaction [session]
function M.undo_compaction(call)
  local session = call.args ~= '' and call.args or MAIN
  nexus.request('nexus/session/undoCompaction', nexus.folder(), { session = session }, function(result)
    notify('%s has its messages again: %s', result.session, plural(result.usage.total, 'token'))
  end)
end

-- ---------------------------------------------------------------- the daemon

--- :NexusStatus
function M.status(call)
  show('status', call, 'nexus/status', nil, function(shown, status)
    page.add(shown, ('nexus %s, protocol %d'):format(status.version, status.protocol), 'Bold')
    page.add(shown, ('%s, %d MB'):format(plural(status.connections, 'client'), status.memory / 2 ^ 20))
    if type(status.ledger) == 'table' then
      page.add(shown, 'Ledger ' .. vim.fn.fnamemodify(status.ledger.path, ':~'))
      if type(status.ledger.notice) == 'string' then
        page.add(shown, status.ledger.notice, 'DiagnosticWarn')
      end
    end
    page.add(shown, '')
    local rows = {}
    for _, folder in ipairs(status.folders) do
      local path = vim.fn.fnamemodify(vim.uri_to_fname(folder.uri), ':~')
      local cells = {
        path,
        grouped(folder.layers),
        grouped(folder.errors),
        grouped(folder.warnings),
        grouped(#folder.sessions),
        folder.freshness.state,
      }
      local group = folder.errors > 0 and 'DiagnosticError' or folder.warnings > 0 and 'DiagnosticWarn' or nil
      table.insert(rows, { cells = cells, group = group, target = { uri = folder.uri } })
    end
    local columns = { { title = 'folder', tail = true } }
    for _, title in ipairs({ 'layers', 'errors', 'warnings', 'sessions' }) do
      table.insert(columns, { title = title, right = true })
    end
    page.table(shown, vim.list_extend(columns, { { title = 'changes' } }), rows)
  end)
end

return M
